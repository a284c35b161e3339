"""The contract of runs: limits that never move, usage counted once, checkpoints that grow."""

from __future__ import annotations

import pytest

from tests.ledger.ingest.steps import hash_of, post_outcome, sent_attempt
from tests.support.api import Api, slug_of

LIMITS = {"tool_calls": 2, "turns": 10, "tokens": None}
CHECKPOINT = {"sequence": 1, "reference": "s3://state/1", "content_hash": hash_of({})}


def test_a_run_is_opened_once_with_its_limits(api: Api) -> None:
    first, again = api.put("/runs/r1", limits=LIMITS), api.put("/runs/r1", limits=LIMITS)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert first.json() == again.json() == api.get("/runs/r1").json()
    assert first.json()["budget"]["tool_calls"] == {"limit": 2, "reserved": 0, "spent": 0, "left": 2}
    assert first.json()["budget"]["tokens"] == {"limit": None, "reserved": 0, "spent": 0, "left": None}
    assert first.json()["checkpoint"] is None


def test_a_resume_raises_no_limit(api: Api) -> None:
    api.put("/runs/r1", limits=LIMITS)
    raised = api.put("/runs/r1", limits={**LIMITS, "tool_calls": 99})
    assert (raised.status_code, slug_of(raised)) == (409, "run-limits-fixed")
    opened = api.put("/runs/r1")
    assert opened.status_code == 200
    assert opened.json()["budget"]["tool_calls"]["limit"] == 2


def test_leave_reserves_and_confirmation_spends(api: Api) -> None:
    api.put("/runs/r1", limits=LIMITS)
    attempt = sent_attempt(api, run="r1")
    assert api.get("/runs/r1").json()["budget"]["tool_calls"] == {
        "limit": 2, "reserved": 1, "spent": 0, "left": 1,
    }  # fmt: skip
    post_outcome(api, attempt, result_ref="x", usage={"tokens": 70})
    budget = api.get("/runs/r1").json()["budget"]
    assert budget["tool_calls"] == {"limit": 2, "reserved": 0, "spent": 1, "left": 1}
    assert budget["tokens"]["spent"] == 70


def test_usage_is_counted_once(api: Api) -> None:
    api.put("/runs/r1", limits=LIMITS)
    first, again = (api.post("/runs/r1/usage", usage_id="u1", usage={"turns": 3}) for _ in range(2))
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json()["budget"]["turns"] == {"limit": 10, "reserved": 0, "spent": 3, "left": 7}
    other = api.post("/runs/r1/usage", usage_id="u1", usage={"turns": 4})
    assert (other.status_code, slug_of(other)) == (409, "usage-id-reused")
    assert api.get("/runs/r1").json()["budget"]["turns"]["spent"] == 3


def test_checkpoints_only_grow(api: Api) -> None:
    api.put("/runs/r1")
    path = "/runs/r1/checkpoint"
    assert api.put(path, **CHECKPOINT).json()["checkpoint"]["reference"] == "s3://state/1"
    again = api.put(path, **CHECKPOINT)
    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (200, "true")
    assert api.put(path, **{**CHECKPOINT, "sequence": 5}).status_code == 200
    for smaller in ({**CHECKPOINT, "sequence": 4}, {**CHECKPOINT, "sequence": 5, "reference": "other"}):
        answer = api.put(path, **smaller)
        assert (answer.status_code, slug_of(answer)) == (409, "checkpoint-not-growing")
    assert api.get("/runs/r1").json()["checkpoint"]["sequence"] == 5


HOSTILE = {
    "limit below zero": ({"limits": {"turns": -1}}, "/limits/turns"),
    "limit beyond all": ({"limits": {"turns": 2**53 - 1}}, "/limits/turns"),
    "limit in parts": ({"limits": {"turns": 1.5}}, "/limits/turns"),
    "limit a text": ({"limits": {"turns": "10"}}, "/limits/turns"),
    "limit a flag": ({"limits": {"turns": True}}, "/limits/turns"),
    "limit of no unit": ({"limits": {"two words": 1}}, "/limits"),
    "limit of a unit otherwise spelled": ({"limits": {"TOKENS": 1}}, "/limits"),
    "limits a list": ({"limits": []}, "/limits"),
    "unknown field": ({"limit": {}}, "/limit"),
}


@pytest.mark.parametrize(("body", "pointer"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_limits_open_no_run(api: Api, body: dict[str, object], pointer: str) -> None:
    answer = api.put("/runs/r1", **body)
    assert (answer.status_code, slug_of(answer)) == (422, "invalid-request")
    assert answer.json()["detail"].startswith(f"{pointer}: ")
    assert api.get("/runs/r1").status_code == 404


@pytest.mark.parametrize("name", ["x" * 256, "%E2%80%AE", "a%E2%80%8Bb"])
def test_hostile_names_open_no_run(api: Api, name: str) -> None:
    answer = api.put(f"/runs/{name}")
    assert (answer.status_code, slug_of(answer)) == (422, "invalid-request")
    assert api.get(f"/runs/{name}").status_code == 404


def test_a_run_may_have_any_printable_name(api: Api) -> None:
    assert api.put("/runs/Rechnung%20%C3%BC:7").json()["run"] == "Rechnung ü:7"


@pytest.mark.parametrize("sequence", [-1, 2**53, "1", 1.5, None])
def test_hostile_sequences_store_no_checkpoint(api: Api, sequence: object) -> None:
    api.put("/runs/r1")
    answer = api.put("/runs/r1/checkpoint", **{**CHECKPOINT, "sequence": sequence})
    assert answer.status_code in {400, 422}
    assert api.get("/runs/r1").json()["checkpoint"] is None


def test_nobody_counts_in_advance_what_an_outcome_will_report(api: Api) -> None:
    api.put("/runs/r1", limits={"tokens": 100})
    attempt = sent_attempt(api, run="r1")
    early = api.post("/runs/r1/usage", usage_id=f"attempt:{attempt['attempt_id']}", usage={"tokens": 1})
    assert (early.status_code, slug_of(early)) == (422, "invalid-request")
    post_outcome(api, attempt, result_ref="x", usage={"tokens": 70})
    assert api.get("/runs/r1").json()["budget"]["tokens"]["spent"] == 70
