"""R50: an approval that was used is spent, whatever a later turn claims.

Kind: a permission that is not used up.

By our rules an agent names no approval at all. A claim of one is an unknown field, refused and not stored;
what lets a send go is found by the ledger in its own rows.
"""

import pytest

from ledger.models import Approval, ApprovalUse, Operation
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.helping import publish
from tests.incidents.scene import DEPLOY, MAIL, Scene
from tests.support.api import slug_of


def approved_and_done(scene: Scene) -> tuple[dict[str, str], str]:
    held = scene.recorded("k1", DEPLOY)
    scene.approve(held)
    leave = scene.dispatched(held)
    reference = scene.send(leave)
    scene.report(leave, "succeeded", result_ref=reference)
    return leave, Approval.objects.get().pk


def test_a_later_intent_asks_a_person_of_its_own(scene: Scene) -> None:
    first, spent = approved_and_done(scene)
    claimed = scene.intent("k2", DEPLOY, approval=spent)
    assert (claimed.status_code, slug_of(claimed)) == (422, "invalid-request")
    assert "approval" in claimed.json()["detail"]
    assert not Operation.objects.filter(operation_key="k2").exists()
    later = scene.recorded("k2", DEPLOY)
    assert later["args_hash"] == first["args_hash"]
    assert (later["state"], later["directive"]) == ("MANUAL_REVIEW", "hold")
    assert slug_of(scene.dispatch(later)) == "on-hold"
    use = ApprovalUse.objects.get()
    assert (use.approval_id, use.attempt_id, scene.all_effects()) == (spent, first["attempt_id"], 1)
    nothing_else_went_wrong(scene)


def test_the_same_operation_again_is_answered_and_not_sent(scene: Scene) -> None:
    """Whatever the history shows of an approval, on resume it leads to nothing."""
    first, _ = approved_and_done(scene)
    for _ in range(3):
        again = scene.recorded("k1", DEPLOY)
        assert (again["directive"], again["attempt_id"]) == ("done", first["attempt_id"])
        assert slug_of(scene.dispatch(first, worker="later")) == "already-done"
    assert scene.effects() == 1
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize("named", ["approval", "approved", "approval_id"])
def test_leave_takes_no_claim_either(scene: Scene, named: str) -> None:
    _, spent = approved_and_done(scene)
    later = scene.recorded("k2", DEPLOY)
    assert slug_of(scene.dispatch(later, **{named: spent})) == "invalid-request"
    assert scene.state(later) == "MANUAL_REVIEW"
    nothing_else_went_wrong(scene)


def test_one_that_was_used_and_whose_send_was_lost_is_spent_as_well(scene: Scene) -> None:
    """A new send of the same attempt needs another."""
    publish(scene, {MAIL: {"review": "always", "approvals": 1}})
    held = scene.recorded("k1", MAIL)
    scene.approve(held)
    leave, _ = scene.sent("k1", "drop_before", tool=MAIL)
    scene.report(leave, "unknown")
    scene.asks_until_settled()
    assert (scene.state(leave), scene.on_desk(leave).reason) == ("MANUAL_REVIEW", "not_idempotent")
    assert slug_of(scene.dispatch(leave, worker="w2")) == "on-hold"
    scene.approve(leave)
    again = scene.dispatched(leave, worker="w2")
    assert scene.send(again)
    assert (ApprovalUse.objects.count(), scene.effects()) == (2, 1)
    scene.report(again, "succeeded", result_ref="msg")
    nothing_else_went_wrong(scene)
