"""R84: two people decide one item at the same moment: yes and no, yes and yes, yes and other arguments.

Kind: two contrary decisions of which both seem to count.

Our rules ("none undone, only answered by another"): a reject after an approval takes the approval back while
no agent has come, so both are recorded and nothing is sent. A second yes where one is enough replaces the
first (`ledger/decisions/0002`): still one approval, one send.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from ledger.lifecycle import Decided, DecisionRefused
from ledger.models import Approval, ApprovalUse, Decision, User
from review import decisions
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import DEPLOY, Body, Scene
from tests.support import make
from tests.support.api import slug_of
from tests.support.races import Work, at_once

pytestmark = pytest.mark.slow

RUNS = 50
CORRECTED = json.dumps({"version": "2026.12"})


def runs(scene: Scene) -> list[tuple[Body, str]]:
    """Fifty deployments that wait for a person, each with its item."""
    held = [scene.recorded(f"k{number}", DEPLOY) for number in range(RUNS)]
    return [(about, make.item_of(scene.attempt(about)).pk) for about in held]


def yes(who: User, item_id: str) -> Work:
    return partial(decisions.approve, who, item_id, why="go")


def test_approve_against_reject(scene: Scene) -> None:
    people = scene.people
    for about, item_id in runs(scene):
        answers = at_once(
            yes(people.approver, item_id), partial(decisions.reject, people.operator, item_id, why="stop")
        )
        kinds = [answer.decision.kind for answer in answers if isinstance(answer, Decided)]
        assert kinds in (["reject"], ["approve", "reject"])
        _losers_know_who_won(answers)
        assert Decision.objects.filter(item=item_id).count() == len(kinds) == len(_decided(scene, about))
        assert (scene.state(about), scene.attempt(about).failure) == ("FAILED", "rejected")
        assert slug_of(scene.dispatch(about)) == "illegal-transition"
    assert not Approval.objects.filter(voided_at=None).exists()
    assert scene.all_effects() == 0
    nothing_else_went_wrong(scene)


def test_approve_against_approve(scene: Scene) -> None:
    people = scene.people
    for about, item_id in runs(scene):
        answers = at_once(yes(people.approver, item_id), yes(people.second_approver, item_id))
        assert any(isinstance(answer, Decided) for answer in answers)
        _losers_know_who_won(answers)
        assert Approval.objects.filter(attempt=about["attempt_id"], voided_at=None).count() == 1
        given = at_once(*[partial(scene.dispatch, about, worker=worker) for worker in ("w1", "w2")])
        assert sorted(answer.status_code for answer in given) == [200, 409]
        assert ApprovalUse.objects.filter(attempt=about["attempt_id"]).count() == 1
        leave = next(answer.json() for answer in given if answer.status_code == 200)
        scene.report(leave, "failed", no_effect=True, error={"class": "refused"})
    nothing_else_went_wrong(scene)


def test_approve_against_relink(scene: Scene) -> None:
    people = scene.people
    for about, item_id in runs(scene):
        answers = at_once(
            yes(people.approver, item_id),
            partial(decisions.relink_arguments, people.operator, item_id, why="typo", typed=CORRECTED),
        )
        approved, relinked = (isinstance(answer, Decided) for answer in answers)
        assert approved != relinked, "exactly one of the two"
        _losers_know_who_won(answers)
        assert len(_decided(scene, about)) == 1
        given = scene.dispatch(about)
        if approved:
            assert (given.status_code, given.json()["args_hash"]) == (200, about["args_hash"])
            scene.report(given.json(), "failed", no_effect=True, error={"class": "refused"})
        else:
            assert (scene.state(about), slug_of(given)) == ("SUPERSEDED", "args-changed")
    assert scene.all_effects() == 0
    nothing_else_went_wrong(scene)


def _decided(scene: Scene, about: Body) -> list[Body]:
    return [*scene.events(about, "review.decided"), *scene.events(about, "review.voted")]


def _losers_know_who_won(answers: list[Any]) -> None:
    winners = [answer for answer in answers if isinstance(answer, Decided)]
    for answer in answers:
        if isinstance(answer, DecisionRefused):
            assert answer.code == "already-decided"
            assert winners[0].decision.by.get_username() in answer.message
            assert winners[0].decision.kind in answer.message
