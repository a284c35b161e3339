"""R58: an expiry counts at the moment of leave, by the database's clock, with no sweeper's help.

Kind: an end that only a sweeper knows.

By our rules an approval's life is the rule's (`approval_ttl_s`, decimals of a second), counted from its
earliest vote; nobody types an end. What carries a time is the intent (`expires_at`). The end itself is
outside: at that instant it has expired. A time long past (after the year 2000) is stored like any other: it
can be neither sent nor approved.
"""

from datetime import UTC, datetime, timedelta

import pytest

from ledger.models import Approval, Attempt, Operation
from ledger.reconciliation import sweep_once
from ledger.transactions import database_clock
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.helping import publish, until
from tests.incidents.scene import DEPLOY, MAIL, Body, Scene
from tests.support.api import slug_of


def approved(scene: Scene, life_s: float) -> Body:
    publish(scene, {DEPLOY: {"approval_ttl_s": life_s}})
    held = scene.recorded("k1", DEPLOY)
    scene.approve(held)
    return held


def test_before_its_end_it_is_used_whatever_the_agents_clock_says(scene: Scene) -> None:
    held = approved(scene, 300)
    ten_minutes_behind = (datetime.now(UTC) - timedelta(minutes=10)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    scene.api.http.headers["Date"] = ten_minutes_behind
    leave = scene.dispatched(held)
    scene.report(leave, "succeeded", result_ref=scene.send(leave))
    assert scene.effects() == 1
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize("minutes", [-10, 10])
def test_after_its_end_it_is_not_although_nothing_swept(scene: Scene, minutes: int) -> None:
    held = approved(scene, 0.05)
    until(Approval.objects.get().expires_at)
    agents_clock = datetime.now(UTC) + timedelta(minutes=minutes)
    scene.api.http.headers["Date"] = agents_clock.strftime("%a, %d %b %Y %H:%M:%S GMT")
    refused = scene.dispatch(held)
    assert (refused.status_code, slug_of(refused)) == (403, "approval-expired")
    assert scene.recorded("k1", DEPLOY)["directive"] != "done"
    sweep_once()
    assert (scene.state(held), scene.on_desk(held).reason) == ("MANUAL_REVIEW", "approval_expired")
    assert scene.effects() == 0
    nothing_else_went_wrong(scene)


def test_an_expired_one_is_given_anew(scene: Scene) -> None:
    held = approved(scene, 0.05)
    until(Approval.objects.get().expires_at)
    sweep_once()
    publish(scene, {DEPLOY: {"approval_ttl_s": 300}})
    scene.approve(held)
    leave = scene.dispatched(held)
    scene.report(leave, "succeeded", result_ref=scene.send(leave))
    assert scene.effects() == 1
    nothing_else_went_wrong(scene)


UNREADABLE = [
    "garbage",
    "",
    "2026-12-01T10:00:00",
    "2026-12-01",
    "2026-13-01T00:00:00Z",
    "infinity",
    "-infinity",
    "now",
    1_790_000_000,
    True,
    "1970-01-01T00:00:00Z",
]


def test_a_time_that_cannot_be_read_is_refused(scene: Scene) -> None:
    for expires_at in UNREADABLE:
        answer = scene.intent(tool=MAIL, expires_at=expires_at)
        assert (answer.status_code, slug_of(answer)) == (422, "invalid-request"), expires_at
    assert not Operation.objects.filter(tenant=scene.people.tenant).exists()
    nothing_else_went_wrong(scene)


def test_what_had_expired_before_it_came_is_never_sent(scene: Scene) -> None:
    old = scene.recorded(tool=MAIL, expires_at="2001-09-09T01:46:40+02:00")
    refused = scene.dispatch(old)
    assert (refused.status_code, slug_of(refused)) == (403, "expired")
    sweep_once()
    assert (scene.state(old), scene.attempt(old).failed_by, scene.effects()) == ("FAILED", "not_started", 0)
    nothing_else_went_wrong(scene)


def test_an_intent_that_expires_is_not_sent_although_nothing_swept(scene: Scene) -> None:
    soon = database_clock() + timedelta(seconds=0.05)
    intent = scene.recorded(tool=MAIL, expires_at=soon.isoformat())
    until(soon)
    assert slug_of(scene.dispatch(intent)) == "expired"
    assert Attempt.objects.get(pk=intent["attempt_id"]).state == "INTENT_RECORDED"
    nothing_else_went_wrong(scene)
