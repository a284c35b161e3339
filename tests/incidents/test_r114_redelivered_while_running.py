"""R114: the broker hands out a task again while the first copy is still at work.

Kind: trusting a queue to run something once.

Work is claimed in the database. Messages carry nothing, wait for no time, and may come twice, late or never.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from config.celery import app
from ledger import tasks
from ledger.models import Attempt, LookUp
from ledger.reconciliation.claims import LOOK_UP_LEASE
from ledger.transactions import database_clock
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import OWN, PAYMENT, Scene
from tests.support.beside import start_command

ROOT = Path(__file__).parents[2]
COPIES = 4


@contextmanager
def first_copy(scene: Scene, *, hangs_in: str, mode: str) -> Iterator[subprocess.Popen[bytes]]:
    """Another worker's pass, which hangs at the provider until it is released; then it goes on to its end."""
    scene.provider.set_mode(mode, on=hangs_in, times=1)
    worker = start_command("reconcile", "--once")
    try:
        scene.provider.wait_for_hanging(timeout=60)
        yield worker
        scene.provider.release()
        assert worker.wait(60) == 0
    finally:
        scene.provider.release()
        worker.kill()
        worker.wait(10)


def test_copies_of_a_look_up_find_nothing_to_do(scene: Scene) -> None:
    lost = scene.unknown()
    scene.time_passes()
    asked = len(scene.provider.requests("GET"))
    with first_copy(scene, hangs_in="look_up", mode="hang"):
        for _ in range(COPIES):
            tasks.reconcile.apply().get()
            tasks.sweep.apply().get()
        assert len(scene.provider.requests("GET")) == asked + 1
        assert (scene.state(lost), LookUp.objects.count()) == ("UNKNOWN", 0)
    assert (scene.state(lost), LookUp.objects.count(), scene.effects()) == ("OUTCOME_CONFIRMED", 1, 1)
    nothing_else_went_wrong(scene)


def test_copies_of_a_send_send_nothing(scene: Scene) -> None:
    own = scene.recorded(tool=OWN)
    with first_copy(scene, hangs_in="send", mode="accept_then_hang"):
        for _ in range(COPIES):
            tasks.send.apply().get()
        assert (scene.effects(), len(scene.provider.requests("POST")) - scene.posts_before) == (1, 1)
    assert (scene.state(own), scene.effects()) == ("OUTCOME_CONFIRMED", 1)
    nothing_else_went_wrong(scene)


def test_a_copy_that_outlives_the_lease_settles_nothing(scene: Scene) -> None:
    """The task takes longer than everything allows: another asks, and the first one's answer is only kept."""
    lost = scene.unknown(tool=PAYMENT)
    scene.time_passes()
    with first_copy(scene, hangs_in="look_up", mode="hang"):
        Attempt.objects.filter(pk=lost["attempt_id"]).update(lookup_lease_until=database_clock())
        tasks.reconcile.apply().get()
        assert scene.state(lost) == "OUTCOME_CONFIRMED"
    assert list(LookUp.objects.order_by("pk").values_list("row", flat=True)) == ["confirmed", "stale"]
    assert (scene.state(lost), scene.effects(), scene.listed()) == ("OUTCOME_CONFIRMED", 1, [])
    nothing_else_went_wrong(scene)


def test_a_lost_message_costs_nothing(scene: Scene) -> None:
    """Nobody was told of this one: the next look for due work finds it."""
    lost = scene.unknown()
    scene.time_passes()
    tasks.reconcile.apply().get()
    assert scene.state(lost) == "OUTCOME_CONFIRMED"
    nothing_else_went_wrong(scene)


def test_no_message_waits_in_the_broker_and_no_task_outlives_its_lease() -> None:
    assert settings.CELERY_TASK_ACKS_LATE
    assert settings.CELERY_TASK_REJECT_ON_WORKER_LOST
    assert settings.CELERY_WORKER_PREFETCH_MULTIPLIER == 1
    assert LOOK_UP_LEASE.total_seconds() > settings.CELERY_TASK_TIME_LIMIT
    expires_s = {name: entry["options"]["expires"] for name, entry in app.conf.beat_schedule.items()}
    assert all(expires_s[name] < 60 for name in ("sweep", "reconcile", "send", "deliver"))
    assert all(seconds < 3_600 for seconds in expires_s.values()), (
        "a broker gives it away again after an hour"
    )
    for path in (*ROOT.glob("ledger/**/*.py"), *ROOT.glob("config/*.py")):
        waits = re.search(r"\b(countdown|eta)\s*=|\.retry\(|visibility_timeout", path.read_text())
        assert not waits, f"{path.name}: {waits}"
    assert all(task.run.__code__.co_argcount == 0 for task in (tasks.sweep, tasks.reconcile, tasks.send))
