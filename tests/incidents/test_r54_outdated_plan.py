"""R54: the plan that was replaced must not be applied, although it was approved.

Kind: a permission that outlives what replaced its subject.

Our rules have no `supersedes`: a plan is replaced by cancelling its operation, or by posting other content
under its key. `retry_of` only names the operation a new one is a new try of; it withdraws nothing.
"""

from ledger.models import Approval
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.helping import publish
from tests.incidents.scene import DEPLOY, OWN, Body, Scene
from tests.support.api import slug_of

OLD = {"version": "sha1"}
NEW = {"version": "sha2"}


def approved(scene: Scene) -> Body:
    held = scene.recorded("k1", DEPLOY, OLD)
    scene.approve(held)
    return held


def test_a_cancelled_plan_is_not_applied_and_its_successor_asks_anew(scene: Scene) -> None:
    old = approved(scene)
    assert scene.cancel(old).json()["state"] == "CANCELLED"
    assert Approval.objects.get().voided_at is not None
    new = scene.recorded("k2", DEPLOY, NEW, retry_of="k1")
    assert new["state"] == "MANUAL_REVIEW"
    assert slug_of(scene.dispatch(old)) == "illegal-transition"
    assert slug_of(scene.dispatch(new)) == "on-hold"
    scene.approve(new)
    leave = scene.dispatched(new)
    assert leave["args"] == NEW
    scene.report(leave, "succeeded", result_ref=scene.send(leave))
    assert (scene.effects("k1"), scene.effects("k2")) == (0, 1)
    nothing_else_went_wrong(scene)


def test_other_content_under_the_key_stops_the_approved_one(scene: Scene) -> None:
    """Until a person decides; an approval of the new plan ends the old one, approval and all."""
    old = approved(scene)
    new = scene.intent("k1", DEPLOY, NEW).json()
    assert slug_of(scene.dispatch(old)) == "on-hold"
    scene.approve(new)
    assert scene.state(old) == "SUPERSEDED"
    assert Approval.objects.get(attempt=old["attempt_id"]).voided_at is not None
    assert slug_of(scene.dispatch(old)) == "illegal-transition"
    leave = scene.dispatched(new)
    assert leave["args"] == NEW
    scene.report(leave, "succeeded", result_ref=scene.send(leave))
    assert (scene.effects(), scene.operation(old)["state"]) == (1, "OUTCOME_CONFIRMED")
    nothing_else_went_wrong(scene)


def test_the_ledgers_own_sender_applies_no_outdated_plan(scene: Scene) -> None:
    """Nor does recovery: what is approved and was replaced is not among what it sends."""
    publish(scene, {OWN: {"review": "always", "approvals": 1}})
    old = scene.recorded("k1", OWN)
    scene.approve(old)
    scene.cancel(old)
    other = scene.recorded("k2", OWN)
    scene.approve(other)
    variant = scene.intent("k2", OWN, {"amount": 71, "currency": "EUR"})
    assert slug_of(variant) == "idempotency-key-reused"
    for _ in range(3):
        scene.time_passes()
        scene.recover()
    assert (scene.effects("k1"), scene.effects("k2")) == (0, 0)
    nothing_else_went_wrong(scene)
