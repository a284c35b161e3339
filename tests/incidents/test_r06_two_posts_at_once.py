"""R06: one client posts the same thing twice within milliseconds, and read-then-create raises.

Kind: a repeat that is not later but at once. Every call that writes is made eight times at the same moment,
on connections of its own: equal answers, one event, one row. Our rules decide otherwise than the report
asked: there is no "dispatched, reference" call; the reference is told by `provider-request`, and a second,
different one goes to a person by way of UNKNOWN as `conflicting_evidence`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

import httpx
import pytest

from ledger.models import Event, Operation, Run, RunCheckpoint
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import Scene
from tests.ledger.ingest.steps import hash_of
from tests.support.api import at_once

AT_ONCE = 8

Post = Callable[[], httpx.Response]


def intent(scene: Scene) -> Post:
    return lambda: scene.intent("k1", run="r", step="s")


def dispatch(scene: Scene) -> Post:
    return partial(scene.dispatch, scene.recorded())


def provider_request(scene: Scene) -> Post:
    return partial(scene.accepted, scene.dispatched(), "p-1")


def heartbeat(scene: Scene) -> Post:
    path = f"/attempts/{scene.dispatched()['attempt_id']}/heartbeat"
    return lambda: scene.api.post(path, worker_id="w1", lease_epoch=1)


def receipt(scene: Scene) -> Post:
    return partial(scene.report, scene.dispatched(), "succeeded", result_ref="r-1")


def proof_of_no_effect(scene: Scene) -> Post:
    error = {"class": "declined"}
    return partial(scene.report, scene.dispatched(), "failed", no_effect=True, error=error)


def lost_contact(scene: Scene) -> Post:
    return partial(scene.report, scene.dispatched(), "unknown", error={"class": "reset"})


def cancel(scene: Scene) -> Post:
    return partial(scene.cancel, scene.recorded())


def recover(scene: Scene) -> Post:
    scene.dispatched()
    return lambda: scene.api.post("/recover", worker_id="w1")


ONCE: Mapping[str, tuple[Callable[[Scene], Post], str]] = {
    "intent": (intent, "attempt.intent"),
    "dispatch": (dispatch, "attempt.dispatched"),
    "provider request": (provider_request, "attempt.provider_request"),
    "receipt": (receipt, "attempt.confirmed"),
    "proof of no effect": (proof_of_no_effect, "attempt.failed"),
    "lost contact": (lost_contact, "attempt.unknown"),
    "cancel": (cancel, "operation.cancelled"),
    "recover": (recover, "attempt.unknown"),
}


@pytest.mark.parametrize("call", ONCE)
def test_at_once_is_as_once(scene: Scene, call: str) -> None:
    prepare, kind = ONCE[call]
    answers = at_once([prepare(scene)] * AT_ONCE)
    expected = {201: 1, 200: AT_ONCE - 1} if call == "intent" else {200: AT_ONCE}
    assert Counter(answer.status_code for answer in answers) == expected
    mine = Event.objects.filter(tenant=scene.people.tenant)
    assert mine.filter(kind=kind).count() == 1
    assert Operation.objects.filter(tenant=scene.people.tenant).count() == 1
    told = [answer.json() for answer in answers]
    assert all(about == told[0] for about in told if "evidence_only" not in about)
    nothing_else_went_wrong(scene)


def test_signs_of_life_at_once_lengthen_one_lease(scene: Scene) -> None:
    answers = at_once([heartbeat(scene)] * AT_ONCE)
    assert {answer.status_code for answer in answers} == {200}
    attempt = scene.attempt(answers[0].json())
    assert attempt.lease_until is not None
    latest = max(answer.json()["lease_until"] for answer in answers)
    assert attempt.lease_until.isoformat()[:23] == latest[:23], "told to the millisecond"
    nothing_else_went_wrong(scene)


RUNS: Mapping[str, Callable[[Scene], Post]] = {
    "opened": lambda scene: lambda: scene.api.put("/runs/r", limits={"turns": 5}),
    "usage": lambda scene: lambda: scene.api.post("/runs/r/usage", usage_id="u", usage={"turns": 2}),
    "checkpoint": lambda scene: (
        lambda: scene.api.put("/runs/r/checkpoint", sequence=1, reference="s3://x", content_hash=hash_of({}))
    ),
}


@pytest.mark.parametrize("call", RUNS)
def test_a_run_is_opened_counted_and_marked_once(scene: Scene, call: str) -> None:
    if call != "opened":
        scene.api.put("/runs/r", limits={"turns": 5})
    answers = at_once([RUNS[call](scene)] * AT_ONCE)
    assert {answer.status_code for answer in answers} <= {200, 201}
    assert Run.objects.filter(tenant=scene.people.tenant, name="r").count() == 1
    assert scene.api.get("/runs/r").json()["budget"]["turns"]["spent"] == (2 if call == "usage" else 0)
    assert RunCheckpoint.objects.count() == (1 if call == "checkpoint" else 0)
    nothing_else_went_wrong(scene)


def test_a_second_reference_is_for_a_person_and_overwrites_nothing(scene: Scene) -> None:
    leave = scene.dispatched()
    first, again = at_once([partial(scene.accepted, leave, "p-1")] * 2)
    assert (first.status_code, again.status_code) == (200, 200)
    other = scene.accepted(leave, "p-2")
    assert other.status_code == 200, "a fact is always accepted"
    assert (other.json()["state"], other.json()["reason"]) == ("MANUAL_REVIEW", "conflicting_evidence")
    assert scene.attempt(leave).provider_request_id == "p-1"
    told = [said["provider_request_id"] for said in scene.events(leave, "attempt.provider_request")]
    assert told == ["p-1", "p-2"]
    assert scene.on_desk(leave).reason == "conflicting_evidence"
    nothing_else_went_wrong(scene)


def test_two_references_at_once_are_for_a_person_too(scene: Scene) -> None:
    leave = scene.dispatched()
    answers = at_once([partial(scene.accepted, leave, f"p-{number}") for number in range(2)])
    assert [answer.status_code for answer in answers] == [200, 200]
    attempt = scene.attempt(leave)
    assert (attempt.state, attempt.reason) == ("MANUAL_REVIEW", "conflicting_evidence")
    assert attempt.provider_request_id in {"p-0", "p-1"}
    nothing_else_went_wrong(scene)


def test_contrary_reports_at_once_are_both_kept(scene: Scene) -> None:
    leave = scene.dispatched()
    reports: list[Post] = [
        partial(scene.report, leave, "succeeded", result_ref="r-1"),
        partial(scene.report, leave, "failed", no_effect=True, error={"class": "declined"}),
    ]
    answers = at_once(reports)
    assert [answer.status_code for answer in answers] == [200, 200]
    assert len(scene.events(leave, "attempt.outcome_reported")) == 2
    attempt = scene.attempt(leave)
    if attempt.state == "FAILED":
        assert scene.on_desk(leave).reason == "conflicting_evidence", "a receipt contradicts it"
    else:
        assert attempt.state == "OUTCOME_CONFIRMED"
    nothing_else_went_wrong(scene)
