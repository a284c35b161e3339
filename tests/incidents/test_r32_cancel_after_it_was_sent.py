"""R32: a cancelled run still pushes its branch a minute later, and ends as cancelled with a success.

Kind: withdrawing what may be under way. Before leave it is withdrawn for good; after leave it is a wish: the
truth is still found out, nothing is sent again, and never is something both cancelled and confirmed.
"""

from __future__ import annotations

import pytest

from ledger.models import Attempt
from ledger.reconciliation import send_once
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import APPLY_AND_DROP, DEPLOY, DROP_BEFORE, OWN, Scene
from tests.support.api import at_once, slug_of


def test_before_it_is_sent_it_is_withdrawn_for_good(scene: Scene) -> None:
    intent = scene.recorded()
    told = scene.cancel(intent).json()
    assert (told["state"], told["directive"], told["outcome"]) == ("CANCELLED", "failed", "cancelled")
    refused = scene.dispatch(intent)
    assert (refused.status_code, slug_of(refused)) == (409, "illegal-transition")
    assert scene.intent().json()["directive"] == "failed"
    assert scene.all_effects() == 0
    nothing_else_went_wrong(scene)


def test_after_it_was_sent_it_is_a_wish(scene: Scene) -> None:
    leave, reference = scene.sent()
    told = scene.cancel(leave).json()
    assert (told["state"], told["outcome"]) == ("DISPATCHED", "open")
    late = scene.report(leave, "succeeded", result_ref=reference).json()
    assert (late["state"], late["outcome"], late["directive"]) == ("OUTCOME_CONFIRMED", "confirmed", "done")
    operation = scene.operation(leave)
    assert operation["cancelled_at"] is not None
    assert "operation.cancelled" in scene.history(leave)
    assert scene.history(leave).count("operation.settled") == 1
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize(
    ("how", "state", "failure"),
    [(APPLY_AND_DROP, "OUTCOME_CONFIRMED", ""), (DROP_BEFORE, "FAILED", "cancelled")],
    ids=["it happened", "it did not"],
)
def test_the_truth_is_found_out_and_nothing_is_sent_again(
    scene: Scene, how: str, state: str, failure: str
) -> None:
    leave, _ = scene.sent(how=how)
    scene.cancel(leave)
    scene.leases_run_out()
    assert scene.state(leave) == "UNKNOWN"
    assert slug_of(scene.dispatch(leave, worker="w2")) == "in-flight"
    scene.asks_until_settled()
    attempt = scene.attempt(leave)
    assert (attempt.state, attempt.failure) == (state, failure)
    refused = scene.dispatch(leave, worker="w3")
    assert refused.status_code == 409
    assert scene.effects() == (1 if how == APPLY_AND_DROP else 0)
    nothing_else_went_wrong(scene)


def test_what_was_to_be_sent_again_is_not(scene: Scene) -> None:
    leave = scene.dispatched()
    scene.report(leave, "failed", no_effect=True, retryable=True, error={"class": "refused"})
    assert scene.state(leave) == "FAILED_RETRYABLE"
    told = scene.cancel(leave).json()
    assert (told["state"], told["directive"], told["reason"]) == ("FAILED", "failed", "cancelled")
    scene.time_passes(3600)
    assert scene.dispatch(leave, worker="w2").status_code == 409
    nothing_else_went_wrong(scene)


def test_a_yes_that_waits_dies_with_it(scene: Scene) -> None:
    held = scene.recorded("k1", DEPLOY)
    scene.approve(held)
    scene.cancel(held)
    assert scene.state(held) == "CANCELLED"
    assert scene.attempt(held).approvals.get().void_cause == "operation cancelled"
    assert scene.dispatch(held).status_code == 409
    nothing_else_went_wrong(scene)


def test_the_ledgers_own_sender_is_stopped_too(scene: Scene) -> None:
    intent = scene.recorded("k1", OWN)
    scene.cancel(intent)
    assert send_once().sent == 0
    assert scene.all_effects() == 0
    nothing_else_went_wrong(scene)


def test_cancel_and_leave_at_once_never_both_win(scene: Scene) -> None:
    """Twenty times in the same moment: withdrawn and no leave, or leave and a wish. On until each has won."""
    seen: set[str] = set()
    for number in range(200):
        if number >= 20 and len(seen) == 2:
            break
        intent = scene.recorded(f"k{number}")
        leave, cancelled = at_once([lambda: scene.dispatch(intent), lambda: scene.cancel(intent)])  # noqa: B023
        assert cancelled.status_code == 200
        state = scene.state(intent)
        seen.add(state)
        assert (leave.status_code, state) in {(200, "DISPATCHED"), (409, "CANCELLED"), (403, "CANCELLED")}
        if leave.status_code == 200:
            scene.report(leave.json(), "succeeded", result_ref=f"r-{number}")
            assert scene.operation(intent)["outcome"] == "confirmed"
    assert seen == {"DISPATCHED", "CANCELLED"}
    assert not Attempt.objects.filter(state="CANCELLED", confirmed_by__gt="").exists()
    nothing_else_went_wrong(scene)
