"""Another tenant's object is as unknown as one that never was."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from ledger.models import Attempt
from tests.ledger.ingest.cast import stored
from tests.ledger.ingest.steps import hash_of, post_intent, sent_attempt
from tests.support.api import Api, slug_of

NEVER = "00000000000000000000000000"

Call = Callable[[Api, str], httpx.Response]

ABOUT_ATTEMPTS: dict[str, Call] = {
    "dispatch": lambda api, name: api.post(
        f"/attempts/{name}/dispatch", worker_id="w1", args_hash=hash_of({})
    ),
    "heartbeat": lambda api, name: api.post(f"/attempts/{name}/heartbeat", worker_id="w1", lease_epoch=1),
}
FACTS: dict[str, Call] = {
    "provider-request": lambda api, name: api.post(
        f"/attempts/{name}/provider-request", worker_id="w1", provider_request_id="p"
    ),
    "outcome": lambda api, name: api.post(
        f"/attempts/{name}/outcome", worker_id="w1", outcome="succeeded", result_ref="r"
    ),
}
ABOUT_OPERATIONS: dict[str, Call] = {
    "operation": lambda api, name: api.get(f"/operations/{name}"),
    "events": lambda api, name: api.get(f"/operations/{name}/events"),
    "cancel": lambda api, name: api.post(f"/operations/{name}/cancel", reason="x"),
}
ABOUT_RUNS: dict[str, Call] = {
    "run": lambda api, name: api.get(f"/runs/{name}"),
    "usage": lambda api, name: api.post(f"/runs/{name}/usage", usage_id="u", usage={"turns": 1}),
    "checkpoint": lambda api, name: api.put(
        f"/runs/{name}/checkpoint", sequence=1, reference="x", content_hash=hash_of({})
    ),
}


def body_of(answer: httpx.Response) -> str:
    """The whole body but the request's own id."""
    assert (answer.status_code, slug_of(answer)) == (404, "not-found")
    return answer.text.replace(answer.json()["request_id"], "")


@pytest.mark.parametrize("call", ABOUT_ATTEMPTS)
def test_a_foreign_attempt_is_unknown(api: Api, stranger: Api, call: str) -> None:
    attempt = sent_attempt(api)["attempt_id"]
    before, make = stored(), ABOUT_ATTEMPTS[call]
    names = (attempt, f"att_{NEVER}", "att_x", "1", "'", NEVER)
    assert len({body_of(make(stranger, name)) for name in names}) == 1
    assert Attempt.objects.get(pk=attempt).state == "DISPATCHED"
    assert stored() == before


@pytest.mark.parametrize("call", FACTS)
def test_a_fact_about_a_foreign_attempt_is_kept_like_one_about_nobodys(
    api: Api, stranger: Api, call: str
) -> None:
    attempt = sent_attempt(api)["attempt_id"]
    before, tell = stored(), FACTS[call]
    answers = [tell(stranger, name) for name in (attempt, f"att_{NEVER}")]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert len({answer.content for answer in answers}) == 1
    assert len({frozenset(_telling_headers(answer).items()) for answer in answers}) == 1
    assert len({body_of(tell(stranger, name)) for name in ("att_x", "1", "'", NEVER)}) == 1
    assert Attempt.objects.get(pk=attempt).state == "DISPATCHED"
    assert stored() == before


def _telling_headers(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name not in ("date", "x-request-id")}


@pytest.mark.parametrize("call", ABOUT_OPERATIONS)
def test_a_foreign_operation_is_unknown(api: Api, stranger: Api, call: str) -> None:
    operation = sent_attempt(api)["operation_id"]
    before, make = stored(), ABOUT_OPERATIONS[call]
    names = (operation, f"op_{NEVER}", "op_x", "1", "'", NEVER)
    assert len({body_of(make(stranger, name)) for name in names}) == 1
    assert stored() == before


@pytest.mark.parametrize("call", ABOUT_RUNS)
def test_a_foreign_run_is_unknown(api: Api, stranger: Api, call: str) -> None:
    api.put("/runs/mine", limits={"turns": 5})
    before, make = stored(), ABOUT_RUNS[call]
    assert len({body_of(make(stranger, name)) for name in ("mine", "never", "x" * 256)}) == 1
    assert stored() == before
    mine = api.get("/runs/mine").json()
    assert (mine["budget"]["turns"]["spent"], mine["checkpoint"]) == (0, None)


def test_tenants_share_no_names(api: Api, stranger: Api) -> None:
    mine, theirs = post_intent(api, run="r"), post_intent(stranger, run="r", args={"other": True})
    assert (mine.status_code, theirs.status_code) == (201, 201)
    assert mine.json()["operation_id"] != theirs.json()["operation_id"]
    keys = [line["operation_id"] for line in stranger.get("/operations").json()["operations"]]
    assert keys == [theirs.json()["operation_id"]]


def test_a_strangers_worker_is_not_declared_dead(api: Api, stranger: Api) -> None:
    attempt = sent_attempt(api)["attempt_id"]
    assert stranger.post("/recover", worker_id="w1").json() == {"attempts": []}
    assert Attempt.objects.get(pk=attempt).state == "DISPATCHED"
