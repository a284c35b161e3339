"""R123: what a killed worker held must come free by itself, and what a healthy one holds must not.

Kind: a lock without an end, or with one that is too near.
"""

from __future__ import annotations

import json
import signal
from datetime import datetime

from ledger.faults import ARMED
from ledger.models import Attempt
from ledger.reconciliation import reconcile_once, sweep_once
from ledger.transactions import database_clock
from tests.crash.world import Agent
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.helping import publish
from tests.incidents.scene import ARGS, PAYMENT, RESOURCES, Body, Scene, key_for
from tests.support.beside import start_command
from tests.support.processes import wait_until


def killed_at(scene: Scene, point: str) -> None:
    agent = Agent(
        {
            "LEDGER_URL": scene.server.address,
            "LEDGER_API_KEY": key_for(scene.people.agent),
            "PROVIDER_URL": scene.provider.url,
            "OPERATION_KEY": "k1",
            "TOOL": PAYMENT,
            "RESOURCE": RESOURCES[PAYMENT],
            "ARGS": json.dumps(ARGS[PAYMENT]),
            "STOP_AT": point,
        }
    )
    agent.says()
    assert agent.says()["at"] == point
    agent.kill()


def ms(moment: datetime | None) -> datetime | None:
    """As precisely as the API tells it."""
    return moment and moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def stuck(told: Body) -> tuple[datetime, datetime | None]:
    """Since when, and when recovery is due."""
    due = told["due_at"]
    return datetime.fromisoformat(told["state_since"]), datetime.fromisoformat(due) if due else None


def test_killed_before_leave_nothing_is_locked(scene: Scene) -> None:
    """Certainly not sent: it stays INTENT_RECORDED and waits for nobody else."""
    killed_at(scene, "recorded")
    told = scene.recorded()
    assert (told["state"], told["directive"], told["due_at"]) == ("INTENT_RECORDED", "dispatch", None)
    leave = scene.dispatched(told, worker="w2")
    scene.report(leave, "succeeded", result_ref=scene.send(leave))
    assert scene.effects() == 1
    nothing_else_went_wrong(scene)


def test_killed_after_leave_it_says_since_when_and_until_when(scene: Scene) -> None:
    """It may have been sent: UNKNOWN as soon as the lease is over, and asked about at once."""
    publish(scene, {PAYMENT: {"dispatch_timeout_s": 2}})
    killed_at(scene, "leave")
    answer = scene.intent()
    told, attempt = answer.json(), Attempt.objects.get(tenant=scene.people.tenant)
    assert (told["state"], told["directive"]) == ("DISPATCHED", "in_flight")
    assert stuck(told) == (ms(attempt.dispatched_at), ms(attempt.lease_until))
    assert int(answer.headers["Retry-After"]) <= 2
    refused = scene.dispatch(told, worker="w2").json()
    assert (refused["state_since"], refused["due_at"]) == (told["state_since"], told["due_at"])
    wait_until(
        lambda: bool(sweep_once().leases) or scene.state(told) == "UNKNOWN", within_s=20, what="UNKNOWN"
    )
    unknown, attempt = scene.recorded(), scene.attempt(told)
    assert (unknown["state"], unknown["directive"]) == ("UNKNOWN", "reconcile")
    assert stuck(unknown) == (ms(attempt.entered_state_at), ms(attempt.next_check_at))
    assert unknown["review_url"]
    scene.asks_until_settled()
    scene.time_passes(700)
    leave = scene.dispatched(scene.recorded(), worker="w2")
    scene.report(leave, "succeeded", result_ref=scene.send(leave))
    assert (leave["attempt"], scene.effects()) == (2, 1)
    nothing_else_went_wrong(scene)


def test_a_healthy_long_job_is_not_taken_away(scene: Scene) -> None:
    """Ten minutes of work in leases of sixty seconds: each sign of life moves its end."""
    leave = scene.dispatched()
    ends = [leave["lease_until"]]
    for _ in range(10):
        said = {"worker_id": "w1", "lease_epoch": leave["lease_epoch"]}
        beat = scene.api.post(f"/attempts/{leave['attempt_id']}/heartbeat", **said)
        assert beat.status_code == 200
        ends.append(beat.json()["lease_until"])
        sweep_once()
        reconcile_once()
        told = scene.recorded()
        assert (told["state"], told["directive"], told["due_at"]) == ("DISPATCHED", "in_flight", ends[-1])
    assert ends == sorted(ends)
    assert (
        scene.report(leave, "succeeded", result_ref=scene.send(leave)).json()["state"] == "OUTCOME_CONFIRMED"
    )
    nothing_else_went_wrong(scene)


def test_a_dead_reconcilers_look_up_is_made_by_another(scene: Scene) -> None:
    """Its lease is said as the time recovery is due, and not a moment that is over already."""
    lost = scene.unknown()
    scene.time_passes()
    dies = start_command("reconcile", "--once", **{ARMED: "reconciler.claimed"})
    assert dies.wait(60) == -signal.SIGKILL
    attempt = scene.attempt(lost)
    assert attempt.lookup_lease_until is not None
    assert reconcile_once().looked_up == 0
    assert stuck(scene.recorded())[1] == ms(attempt.lookup_lease_until)
    Attempt.objects.filter(pk=attempt.pk).update(lookup_lease_until=database_clock())
    assert reconcile_once().looked_up == 1
    assert (scene.state(lost), scene.effects()) == ("OUTCOME_CONFIRMED", 1)
    nothing_else_went_wrong(scene)
