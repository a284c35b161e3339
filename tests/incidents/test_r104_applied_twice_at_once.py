"""R104: a person's "send again" and recovery take the same attempt at the same moment.

Kind: two parts of one system that each begin the same work.

The one that comes second is told `in-flight` (an agent), or that a look-up is under way (a person).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from django.db import connection

from ledger.lifecycle import DecisionRefused
from ledger.models import Attempt, Event, LookUp
from ledger.reconciliation import reconcile_once, send_once
from review import decisions
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.helping import publish
from tests.incidents.scene import MAIL, NONE, OWN, Body, Scene
from tests.support import make
from tests.support.api import slug_of
from tests.support.races import Work, at_once

ROUNDS = 8


def approved_to_be_sent_again(scene: Scene, key: str = "k1") -> Body:
    """A mail that was found absent, and a person's yes to a new one."""
    lost = scene.unknown(key, tool=MAIL, how="drop_before")
    scene.asks_until_settled(NONE)
    scene.approve(lost)
    return lost


def test_while_recovery_asks_nobody_sends(scene: Scene) -> None:
    lost = scene.unknown(tool=MAIL, how="drop_before")
    scene.asks_until_settled(NONE)
    item = make.item_of(scene.attempt(lost))
    decisions.recheck(scene.people.operator, item.pk, why="one more look")
    scene.provider.set_mode("hang", on="look_up", times=1)
    with ThreadPoolExecutor(1) as recovery:
        asking = recovery.submit(_then_hang_up, reconcile_once)
        scene.provider.wait_for_hanging()
        assert slug_of(scene.dispatch(lost, worker="w2")) == "in-flight"
        with pytest.raises(DecisionRefused) as refused:
            decisions.approve(scene.people.second_approver, item.pk, why="go")
        assert refused.value.code == "recheck-first"
        assert reconcile_once().looked_up == 0, "nor does a second reconciler"
        scene.provider.release()
        asking.result(30)
    scene.provider.set_mode("honest")
    nothing_else_went_wrong(scene)


def test_leave_against_recovery(scene: Scene) -> None:
    """Whoever comes first: one leave or none, and never a second effect."""
    for number in range(ROUNDS):
        lost = approved_to_be_sent_again(scene, f"k{number}")
        item = make.item_of(scene.attempt(lost))
        first, second, _, _ = at_once(
            partial(scene.dispatch, lost, worker="w2"),
            partial(scene.dispatch, lost, worker="w3"),
            reconcile_once,
            partial(decisions.recheck, scene.people.operator, item.pk, why="look again"),
        )
        given = [answer.json() for answer in (first, second) if answer.status_code == 200]
        refused = {slug_of(answer) for answer in (first, second) if answer.status_code != 200}
        assert len(given) <= 1
        assert refused <= {"in-flight", "on-hold"}
        for leave in given:
            scene.report(leave, "succeeded", result_ref=scene.send(leave))
        assert scene.effects(f"k{number}") == len(given)
    nothing_else_went_wrong(scene)


def test_the_ledgers_own_sender_against_itself_and_a_person(scene: Scene) -> None:
    publish(scene, {OWN: {"review": "always", "approvals": 1}})
    for number in range(ROUNDS):
        held = scene.recorded(f"k{number}", OWN)
        item = make.item_of(scene.attempt(held))
        at_once(
            partial(decisions.approve, scene.people.approver, item.pk, why="go"),
            send_once,
            partial(decisions.approve, scene.people.second_approver, item.pk, why="go"),
            send_once,
        )
        Attempt.objects.filter(send_again_at__isnull=False).update(send_again_at=None)
        at_once(send_once, send_once, send_once)
        assert (scene.state(held), scene.effects(f"k{number}")) == ("OUTCOME_CONFIRMED", 1)
        assert Event.objects.filter(attempt=held["attempt_id"], kind="attempt.dispatched").count() == 1
    nothing_else_went_wrong(scene)


def test_two_reconcilers_ask_once(scene: Scene) -> None:
    lost = [scene.unknown(f"k{number}") for number in range(3)]
    scene.time_passes()
    at_once(*[reconcile_once] * 4)
    assert LookUp.objects.count() == len(lost)
    assert {scene.state(about) for about in lost} == {"OUTCOME_CONFIRMED"}
    nothing_else_went_wrong(scene)


def _then_hang_up(work: Work) -> Any:
    try:
        return work()
    finally:
        connection.close()
