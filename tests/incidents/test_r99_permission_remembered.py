"""R99: a process that lives long must not remember who was allowed what.

Kind: authority asked once and used later.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg

from ledger.models import ApiKey, Attempt, Provider, Tenant
from ledger.reconciliation import send_once
from ledger.transactions import database_clock
from review.models import ApprovalScope
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import ARGS, DEPLOY, OWN, RESOURCES, Scene, configuration
from tests.support.api import slug_of
from tests.support.beside import database_url_of_tests
from tests.support.processes import wait_until

WAITS = """
    SELECT EXISTS (SELECT 1 FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%ledger_operation%')
"""


def test_what_is_revoked_while_leave_waits_for_a_lock_gives_none(scene: Scene) -> None:
    """The request was authenticated; its transaction asks again, after the lock."""
    intent = scene.recorded()
    address = database_url_of_tests()
    with psycopg.connect(address) as holder, psycopg.connect(address, autocommit=True) as watcher:
        holder.execute("SELECT 1 FROM ledger_operation WHERE id = %s FOR UPDATE", [intent["operation_id"]])
        with ThreadPoolExecutor(1) as agent:
            asked = agent.submit(scene.dispatch, intent)
            wait_until(lambda: watcher.execute(WAITS).fetchone() == (True,), within_s=10, what="it waits")
            assert not asked.done()
            _revoke(scene.people.tenant)
            holder.rollback()
            refused = asked.result(20)
    assert (refused.status_code, slug_of(refused)) == (403, "key-revoked")
    assert (scene.state(intent), scene.effects()) == ("INTENT_RECORDED", 0)
    nothing_else_went_wrong(scene)


def test_a_web_process_asks_anew_for_each_leave(scene: Scene) -> None:
    """It has just allowed the same key, the same approver, and another tenant's in between."""
    first, second = scene.recorded("k1", DEPLOY), scene.recorded("k2", DEPLOY)
    for held in (first, second):
        scene.approve(held)
    leave = scene.dispatched(first)
    scene.report(leave, "succeeded", result_ref=scene.send(leave))
    assert scene.stranger.get("/operations").status_code == 200
    ApprovalScope.objects.filter(tenant=scene.people.tenant).delete()
    assert slug_of(scene.dispatch(second)) == "approver-refused"
    _revoke(scene.people.tenant)
    assert slug_of(scene.dispatch(second)) == "key-revoked"
    assert scene.stranger.get("/operations").status_code == 200
    assert scene.all_effects() == 1
    nothing_else_went_wrong(scene)


def test_the_ledgers_own_sender_asks_anew_in_each_pass_and_for_each_tenant(scene: Scene) -> None:
    """One process, pass after pass over two tenants: what is taken from one is not taken from the other."""
    other = scene.people.other_tenant
    Provider.objects.create(
        tenant=other, name=RESOURCES[OWN], adapter="http", config=configuration(scene.provider.url, OWN)
    )
    before, after = scene.recorded("k1", OWN), scene.recorded("k2", OWN)
    Attempt.objects.filter(pk=after["attempt_id"]).update(send_again_at=database_clock() + timedelta(hours=1))
    assert send_once().sent == 1
    assert scene.state(before) == "OUTCOME_CONFIRMED"
    _revoke(scene.people.tenant)
    theirs = scene.stranger.post("/intents", operation_key="s1", tool=OWN, args=ARGS[OWN]).json()
    scene.time_passes(3600)
    report = send_once()
    assert (report.sent, report.sends_refused) == (1, 1)
    assert (scene.state(after), scene.state(theirs)) == ("INTENT_RECORDED", "OUTCOME_CONFIRMED")
    assert scene.events(after, "attempt.leave_refused")[-1]["reasons"] == ["key-revoked"]
    nothing_else_went_wrong(scene, strangers_acted=True)


def _revoke(tenant: Tenant) -> None:
    ApiKey.objects.filter(tenant=tenant).update(revoked_at=database_clock())
