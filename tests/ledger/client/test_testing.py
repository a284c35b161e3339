"""The kit for killing one's own agent: its provider counts truly, and its kills are told from endings."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from ledger.client.testing import Boundary, CountingProvider, run_agent
from ledger.providers import Question, adapter_for
from ledger.rules.canonical import canonical_bytes, content_hash
from ledger.rules.looked_up import LookedUp, LookedUpKind

PAGE = Path(__file__).parents[3] / "docs" / "client.md"


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[CountingProvider]:
    with CountingProvider(tmp_path) as counting:
        yield counting


def send(provider: CountingProvider, key: str, **body: Any) -> dict[str, Any]:
    answer = httpx.post(
        f"{provider.url}/tickets", json=body, headers={"Idempotency-Key": key}, trust_env=False
    )
    assert answer.status_code == 201
    said: dict[str, Any] = answer.json()
    return said


def test_every_request_is_an_effect(provider: CountingProvider) -> None:
    ids = [
        send(provider, "k1", metadata={"correlation_id": "ilc-1"}, title="a")["id"],
        send(provider, "k1", metadata={"correlation_id": "ilc-1"}, title="a")["id"],
        send(provider, "k2", correlation_id="ilc-2")["id"],
    ]
    assert ids == ["eff_1", "eff_2", "eff_3"]
    assert (provider.effects(), provider.effects("ilc-1"), provider.effects("ilc-3")) == (3, 2, 0)
    assert provider.most_for_one_operation() == 2
    assert [effect.idempotency_key for effect in provider.all_effects()] == ["k1", "k1", "k2"]


def test_a_provider_that_honours_keys_has_one_effect_for_each(tmp_path: Path) -> None:
    with CountingProvider(tmp_path, honours_keys=True) as provider:
        assert [send(provider, key)["id"] for key in ("k1", "k1", "", "")] == [
            "eff_1",
            "eff_1",
            "eff_2",
            "eff_3",
        ]


def test_its_count_survives_its_own_death(provider: CountingProvider) -> None:
    send(provider, "k1")
    address = provider.url
    provider.stop()
    assert provider.effects() == 1
    provider.start()
    assert (provider.url, send(provider, "k2")["id"], provider.effects()) == (address, "eff_2", 2)


@pytest.mark.parametrize("raw", [b"", b"not json", b"[1]", b"\xff"])
def test_whatever_is_sent_is_counted(provider: CountingProvider, raw: bytes) -> None:
    assert httpx.post(f"{provider.url}/x", content=raw, trust_env=False).status_code == 201
    assert provider.effects("") == 1


@pytest.mark.parametrize("boundary", [Boundary.AFTER_LEAVE, Boundary.WHILE_SENDING])
def test_a_program_that_never_arrives_ends_by_itself(
    provider: CountingProvider, tmp_path: Path, boundary: Boundary
) -> None:
    program = tmp_path / "idle.py"
    program.write_text("import sys; print('said', *sys.argv[1:]); sys.exit(3)")
    ended = run_agent(program, "x", kill_at=boundary, provider=provider)
    assert (ended.killed, ended.exit_code, ended.stdout) == (False, 3, "said x\n")


def test_a_program_that_hangs_is_ended(provider: CountingProvider, tmp_path: Path) -> None:
    program = tmp_path / "hangs.py"
    program.write_text("import threading; threading.Event().wait()")
    with pytest.raises(subprocess.TimeoutExpired):
        run_agent(program, timeout=0.2)
    with pytest.raises(TimeoutError, match="did not send"):
        run_agent(program, kill_at=Boundary.WHILE_SENDING, provider=provider, timeout=0.2)


def test_dying_while_sending_needs_somebody_to_send_to(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="needs the provider"):
        run_agent(tmp_path / "none.py", kill_at=Boundary.WHILE_SENDING)


def looked_up(provider: CountingProvider, title: str) -> LookedUp:
    """What the ledger finds there, configured as the page says."""
    found = re.search(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    config = json.loads(found[1].replace("http://127.0.0.1:8123", provider.url))
    args = {"title": title}
    question = Question(
        tool="t",
        args=args,
        args_hash=content_hash(canonical_bytes(args)),
        operation_key="k",
        idempotency_key="k1",
        correlation_id="ilc-1",
    )
    return adapter_for(SimpleNamespace(name="counting", adapter="http", config=config)).look_up(question)


def test_the_ledger_can_look_up_there_as_the_page_says(provider: CountingProvider) -> None:
    assert looked_up(provider, "Printer").kind is LookedUpKind.ABSENT
    send(provider, "k1", title="Printer", metadata={"correlation_id": "ilc-1"})
    found = looked_up(provider, "Printer")
    assert [(record.reference, record.content, record.state) for record in found.records] == [
        ("eff_1", "same", "done")
    ]
    assert looked_up(provider, "Scanner").records[0].content == "other"
