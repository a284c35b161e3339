"""The single calls: their addresses and bodies, and how the client repeats its own calls and nothing else."""

import os
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from ledger.client import Ledger, LedgerUnavailable, Refused
from tests.ledger.client.fake import DROP, HASH, Canned, FakeLedger, directive, problem

CALLS: list[tuple[Callable[[Ledger], Any], str, str, dict[str, Any]]] = [
    (lambda led: led.recover("dead-1"), "POST", "/recover", {"worker_id": "dead-1"}),
    (lambda led: led.get_operation("op_1"), "GET", "/operations/op_1", {}),
    (
        lambda led: led.find_operations(operation_key="a b&c", limit="5"),
        "GET",
        "/operations?operation_key=a+b%26c&limit=5",
        {},
    ),
    (lambda led: led.cancel("op_1", reason="no"), "POST", "/operations/op_1/cancel", {"reason": "no"}),
    (
        lambda led: led.put_run("r/1", limits={"tokens": 5, "EUR": Decimal("500.00"), "USD": None}),
        "PUT",
        "/runs/r%2F1",
        {"limits": {"tokens": 5, "EUR": "500.00", "USD": None}},
    ),
    (lambda led: led.get_run("r"), "GET", "/runs/r", {}),
    (
        lambda led: led.post_usage("r", usage_id="u1", usage={"turns": 1}),
        "POST",
        "/runs/r/usage",
        {"usage_id": "u1", "usage": {"turns": 1}},
    ),
    (
        lambda led: led.put_checkpoint("r", sequence=2, reference="s3://x", content_hash=HASH),
        "PUT",
        "/runs/r/checkpoint",
        {"sequence": 2, "reference": "s3://x", "content_hash": HASH},
    ),
    (
        lambda led: led.report_outcome("att_1", "failed", error_class="declined", no_effect=True),
        "POST",
        "/attempts/att_1/outcome",
        {"outcome": "failed", "no_effect": True, "error": {"class": "declined", "message": ""}},
    ),
]


@pytest.mark.parametrize(("call", "method", "path", "body"), CALLS, ids=[row[2] for row in CALLS])
def test_each_call_has_its_address_and_body(
    ledger: Ledger,
    fake: FakeLedger,
    call: Callable[[Ledger], Any],
    method: str,
    path: str,
    body: dict[str, Any],
) -> None:
    call(ledger)
    asked_method, asked_path, asked_body = fake.asked[0]
    assert (asked_method, asked_path) == (method, f"/api/v1{path}")
    assert body.items() <= asked_body.items()


@pytest.mark.parametrize("id_", ["", ".", ".."])
def test_an_id_that_names_nothing_is_not_asked_for(ledger: Ledger, fake: FakeLedger, id_: str) -> None:
    with pytest.raises(ValueError, match="names nothing"):
        ledger.get_operation(id_)
    assert fake.asked == []


PASSING = [DROP, Canned(500), Canned(502, raw=b"<html>"), problem(503, "busy"), problem(429, "slow-down")]


@pytest.mark.parametrize("missed", PASSING, ids=[str(canned.status) for canned in PASSING])
def test_an_unanswered_call_is_made_again(
    ledger: Ledger, fake: FakeLedger, waits: list[float], missed: Canned
) -> None:
    fake.on("intents", missed, missed, directive("dispatch"))
    answer = ledger.post_intent("k", tool="t", args={})
    assert answer.directive == "dispatch"
    assert len(fake.asked) == 3
    assert len(waits) == 2


def test_it_gives_up(ledger: Ledger, fake: FakeLedger, waits: list[float]) -> None:
    fake.on("intents", *[Canned(500)] * 9)
    with pytest.raises(LedgerUnavailable, match="answered 500"):
        ledger.post_intent("k", tool="t", args={})
    assert len(fake.asked) == 5
    assert len(waits) == 4


def test_it_waits_as_long_as_it_is_told(ledger: Ledger, fake: FakeLedger, waits: list[float]) -> None:
    fake.on("intents", problem(429, "slow-down", headers={"Retry-After": "3"}), directive("dispatch"))
    ledger.post_intent("k", tool="t", args={})
    assert waits == [3.0]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422])
def test_a_refusal_is_not_asked_for_twice(ledger: Ledger, fake: FakeLedger, status: int) -> None:
    fake.on("intents", problem(status, "some-refusal"))
    with pytest.raises(Refused, match="some-refusal"):
        ledger.post_intent("k", tool="t", args={})
    assert len(fake.asked) == 1


def test_the_environment_says_where_and_who(monkeypatch: pytest.MonkeyPatch, fake: FakeLedger) -> None:
    monkeypatch.delenv("LEDGER_API_KEY", raising=False)
    monkeypatch.setenv("LEDGER_URL", fake.url + "/")
    with pytest.raises(ValueError, match="set LEDGER_API_KEY in the environment"):
        Ledger.from_env()
    monkeypatch.setenv("LEDGER_API_KEY", "ilk_1")
    ledger = Ledger.from_env()
    ledger.get_run("r")
    ledger.close()
    assert fake.asked[0][1] == "/api/v1/runs/r"
    assert fake.authorizations == {"Bearer ilk_1"}


def test_a_proxy_of_the_environment_never_sees_the_key(
    monkeypatch: pytest.MonkeyPatch, fake: FakeLedger, ledger: Ledger
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert ledger.get_run("r")


def test_a_forked_process_is_another_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger("http://127.0.0.1:1", "ilk_1")
    before = ledger.worker_id
    assert ledger.worker_id == before
    monkeypatch.setattr(os, "getpid", lambda: -7)
    assert ledger.worker_id != before


@pytest.mark.parametrize(("url", "key"), [("ftp://x", "k"), ("", "k"), ("http://x", "")])
def test_a_useless_address_or_key_is_said_at_once(url: str, key: str) -> None:
    with pytest.raises(ValueError, match=r"address|API key"):
        Ledger(url, key)


def test_the_key_is_in_no_repr() -> None:
    ledger = Ledger("http://127.0.0.1:1", "ilk_secret")
    assert "ilk_secret" not in repr(ledger) + repr(ledger._transport)


def test_an_agent_needs_no_django() -> None:
    program = (
        "import sys, ledger.client; print([m for m in sys.modules if m in ('django', 'celery', 'psycopg')])"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
