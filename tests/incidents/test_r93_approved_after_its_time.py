"""R93: a yes to what had expired is refused underneath, while page and journal say success, or the agent is
told to wait for a yes that can no longer work.

Kind: a deadline that only some of the parts know. It is asked where it counts, by the database's clock,
inside the transaction that decides or gives leave, and no sweep has to have run; page, button, answer and
history say the same. Our rules decide otherwise than the report asked: a press that is refused writes
nothing, so that the history holds refusals of leave only; a held attempt whose time is over stays held until
a person rejects it, so its agent is told `hold`, not that it has expired.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from ledger.lifecycle import DecisionRefused
from ledger.models import Approval, Attempt, Decision, Vote
from ledger.reconciliation import sweep_once
from ledger.transactions import database_clock
from review import decisions
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import DEPLOY, Body, Scene
from tests.support import make
from tests.support.api import slug_of


def soon(scene: Scene) -> str:
    """A time that is over by the next statement."""
    return f"{database_clock():%Y-%m-%dT%H:%M:%S.%fZ}"


def approval_expires(about: Body, at: datetime) -> None:
    """The clock is not waited for: the yes and its votes were given so long ago. Past the triggers, for a
    moment, because nothing of ours can do that."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        Approval.objects.filter(attempt=about["attempt_id"]).update(expires_at=at)
        cursor.execute("SET session_replication_role = origin")


def test_a_yes_after_its_time_is_refused_and_recorded_nowhere(scene: Scene) -> None:
    held = scene.recorded("k1", DEPLOY, expires_at=soon(scene))
    button = scene.action(held, "approve")
    assert not button.enabled
    assert any("expired" in why for why in button.why_disabled)
    before = scene.history(held)
    with pytest.raises(DecisionRefused) as refused:
        scene.vote(scene.people.approver, held)
    assert "expired" in refused.value.reasons
    assert not any(model.objects.exists() for model in (Decision, Vote, Approval))
    assert scene.history(held) == before
    again = scene.recorded("k1", DEPLOY)
    assert (again["state"], again["directive"]) == ("MANUAL_REVIEW", "hold")
    nothing_else_went_wrong(scene)


def test_a_no_after_its_time_still_closes_it(scene: Scene) -> None:
    held = scene.recorded("k1", DEPLOY, expires_at=soon(scene))
    item = make.item_of(scene.attempt(held))
    decisions.reject(scene.people.operator, item.pk, why="too late")
    assert (scene.state(held), scene.attempt(held).failure) == ("FAILED", "rejected")
    assert scene.recorded("k1", DEPLOY)["directive"] == "failed"
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize("swept", [False, True])
def test_leave_after_the_time_of_the_yes_is_refused_whether_swept_or_not(scene: Scene, swept: bool) -> None:
    held = scene.recorded("k1", DEPLOY)
    scene.approve(held)
    approval_expires(held, database_clock())
    if swept:
        sweep_once()
    answer = scene.dispatch(held)
    if swept:
        assert (answer.status_code, slug_of(answer)) == (409, "on-hold")
    else:
        assert (answer.status_code, slug_of(answer)) == (403, "approval-expired")
        assert scene.events(held, "attempt.leave_refused")[-1]["reasons"] == ["approval-expired"]
    sweep_once()
    attempt = scene.attempt(held)
    assert (attempt.state, attempt.reason) == ("MANUAL_REVIEW", "approval_expired")
    told = scene.recorded("k1", DEPLOY)
    assert (told["directive"], told["reason"]) == ("hold", "approval_expired")
    assert "approval.expired" in scene.history(held)
    assert scene.all_effects() == 0
    nothing_else_went_wrong(scene)


def test_a_second_before_it_is_given_and_used_once(scene: Scene) -> None:
    held = scene.recorded("k1", DEPLOY)
    scene.approve(held)
    approval_expires(held, database_clock() + timedelta(minutes=5))
    leave = scene.dispatched(held)
    scene.report(leave, "succeeded", result_ref=scene.send(leave))
    assert Approval.objects.get().used_at is not None
    assert sweep_once().approvals == 0
    assert scene.state(leave) == "OUTCOME_CONFIRMED"


@pytest.mark.parametrize("swept", [False, True])
def test_what_its_agent_never_came_for_is_over_at_its_time(scene: Scene, swept: bool) -> None:
    intent = scene.recorded(expires_at=soon(scene))
    if swept:
        sweep_once()
    answer = scene.dispatch(intent)
    assert slug_of(answer) == ("illegal-transition" if swept else "expired")
    sweep_once()
    attempt = Attempt.objects.get(pk=intent["attempt_id"])
    assert (attempt.state, attempt.failure) == ("FAILED", "not_started")
    assert scene.recorded()["directive"] == "failed", "it is told that it is over, not to wait"
    nothing_else_went_wrong(scene)
