"""R67: one bad destination stops all work.

Kind: one that is slow, in a line where everybody stands.

Ten thousand wait for a destination that hangs, or for several that hang, more than a process has places, and
another hears of each operation before the next one is done. `python -m tests.bench.dead_destination` prints
its delivery age beside the same without the dead one. What goes to the broker carries no content at all, and
deliveries have a queue of their own.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from celery import current_app
from django.conf import settings

from ledger import outbox
from ledger.deliveries import deliver_once, stop_sending
from ledger.models import Delivery, DeliveryTry, Destination
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import Scene
from tests.ledger.deliveries.helping import destination, more_waiting
from tests.support.consumer import ConsumerProcess
from tests.support.processes import wait_until

WAITING = 10_000


@pytest.mark.parametrize("bad", [1, 6])
def test_the_others_are_served_while_some_hang(
    scene: Scene, consumer: ConsumerProcess, tmp_path_factory: pytest.TempPathFactory, bad: int
) -> None:
    """One that hangs keeps four places; six of them keep more than a process has."""
    with ConsumerProcess(tmp_path_factory.mktemp("hangs")) as hanging:
        hanging.answer(200, how="hang")
        hang = [destination(scene.people, hanging, name=f"hangs-{number}")[0] for number in range(bad)]
        good, _ = destination(scene.people, consumer, name="books")
        scene.confirmed("k0")
        more_waiting(hang[0].deliveries.get(), WAITING)
        for number in range(1, 6):
            scene.confirmed(f"k{number}")
            wait_until(partial(_is_told, good, number + 1), within_s=12, what="the good one is told")
        assert DeliveryTry.objects.filter(delivery__destination__in=hang, ended_at=None).count() == 4 * bad
        assert len(hanging.received()) == 4 * bad
        hanging.kill()
    stop_sending()
    assert Delivery.objects.filter(destination__in=hang, state="ACKED").count() == 0


def _is_told(good: Destination, count: int) -> bool:
    """Whether it has acknowledged so many, after one more pass."""
    deliver_once(pass_s=0.3, drain=False)
    return good.deliveries.filter(state="ACKED").count() == count


def test_a_hint_carries_nothing_and_has_a_queue_of_its_own(
    scene: Scene, consumer: ConsumerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[tuple[Any, ...]] = []
    monkeypatch.setattr(current_app, "send_task", lambda *what, **how: messages.append((what, how)))
    monkeypatch.setattr(outbox, "_hints", None)  # whoever hinted before may be waiting for its broker
    outbox._hint()
    wait_until(lambda: bool(messages), within_s=10, what="the hint")
    ((what, how),) = messages
    assert what == ("ledger.tasks.deliver",)
    assert set(how) == {"retry", "expires"}
    assert settings.CELERY_TASK_ROUTES["ledger.tasks.deliver"] == {"queue": "deliveries"}
    nothing_else_went_wrong(scene)
