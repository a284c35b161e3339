"""R15: Provider callback arrives before the local record exists.

Kind: a fact that is early is kept and applied once; it is never acknowledged and dropped.

The scenario ends in an applied outcome. domain.md wins on its state: whoever reports a send that nobody had
leave for is `sent_without_leave`, and a person decides; only after leave does the receipt confirm.
"""

from __future__ import annotations

from datetime import datetime

from ledger.models import Event, ParkedFact, ReviewItem
from ledger.queries.parked import recorded_after_send
from review.queries.parked import parked_page
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import Body, Scene
from tests.support.api import slug_of

EARLIER = "2026-08-11T09:30:00+00:00"
REPORTED_WITHOUT_LEAVE = ["attempt.intent", "attempt.outcome_reported", "attempt.manual_review"]


def callback(scene: Scene, **said: str) -> int:
    """CONFIRMED(ref=p-1, correlation=k1), with its own occurred-at."""
    body = {"operation_key": "k1", "worker_id": "hook", "outcome": "succeeded", "result_ref": "p-1"}
    return scene.api.post("/outcomes", **body, occurred_at=EARLIER, **said).status_code


def told(scene: Scene) -> list[Event]:
    return list(Event.objects.filter(tenant=scene.people.tenant).order_by("sequence"))


def is_for_a_person(scene: Scene, about: Body) -> None:
    """The report is kept, in its own time, as the one open question; leave is refused."""
    attempt, history = scene.attempt(about), told(scene)
    assert (attempt.state, attempt.reason) == ("MANUAL_REVIEW", "sent_without_leave")
    assert [event.kind for event in history] == REPORTED_WITHOUT_LEAVE
    assert history[1].data["occurred_at"] == EARLIER
    assert ReviewItem.objects.get(attempt=attempt).closed_at is None
    assert slug_of(scene.dispatch(about)) == "on-hold"


def test_before_the_intent(scene: Scene) -> None:
    assert callback(scene) == 202
    intent = scene.intent()
    assert (intent.status_code, intent.json()["reason"]) == (202, "sent_without_leave")
    is_for_a_person(scene, intent.json())
    history = told(scene)
    assert datetime.fromisoformat(history[1].data["parked"]["since"]) < history[0].at
    assert callback(scene) == 200
    assert len(told(scene)) == len(history)
    assert recorded_after_send() == 1
    nothing_else_went_wrong(scene)


def test_before_leave(scene: Scene) -> None:
    intent = scene.recorded()
    assert callback(scene) == 200
    is_for_a_person(scene, intent)
    assert "parked" not in told(scene)[1].data
    nothing_else_went_wrong(scene)


def test_after_leave_it_confirms(scene: Scene) -> None:
    leave = scene.dispatched()
    assert callback(scene, args_hash=scene.attempt(leave).args_hash) == 200
    assert (scene.state(leave), scene.attempt(leave).result_ref) == ("OUTCOME_CONFIRMED", "p-1")
    assert told(scene)[-1].kind == "operation.settled"
    nothing_else_went_wrong(scene)


def test_the_hash_is_compared(scene: Scene) -> None:
    leave = scene.dispatched()
    assert callback(scene, args_hash="v1:sha256:" + "0" * 64) == 200
    assert (scene.state(leave), scene.on_desk(leave).reason) == ("MANUAL_REVIEW", "hash_mismatch")
    nothing_else_went_wrong(scene)


def test_what_never_matches_is_listed_for_people(scene: Scene) -> None:
    assert callback(scene) == 202
    (row,) = parked_page(scene.people.operator).rows
    assert (row.operation_key, row.agent, row.times_told) == ("k1", "billing-bot", 1)
    scene.recorded()
    assert parked_page(scene.people.operator).rows == ()
    assert not ParkedFact.objects.filter(joined_at=None).exists()
    nothing_else_went_wrong(scene)
