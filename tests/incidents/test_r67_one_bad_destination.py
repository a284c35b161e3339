"""R67: one bad destination stops all work.

Kind: one that is slow, in a line where everybody stands.

The short form: thousands wait for a destination that hangs, and another is served meanwhile. What goes to the
broker carries no content at all, and deliveries have a queue of their own.
"""

from __future__ import annotations

from typing import Any

import pytest
from celery import current_app
from django.conf import settings

from ledger import outbox
from ledger.deliveries import deliver_once, stop_sending
from ledger.models import Delivery, DeliveryTry
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import Scene
from tests.ledger.deliveries.helping import destination, more_waiting
from tests.support.consumer import ConsumerProcess
from tests.support.processes import wait_until


def test_the_others_are_served_while_one_hangs(
    scene: Scene, consumer: ConsumerProcess, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with ConsumerProcess(tmp_path_factory.mktemp("hangs")) as hanging:
        hanging.answer(200, how="hang")
        bad, _ = destination(scene.people, hanging, name="hangs")
        good, _ = destination(scene.people, consumer, name="books")
        scene.confirmed("k0")
        more_waiting(bad.deliveries.get(), 5_000)
        deliver_once(pass_s=0.5, drain=False)
        for number in range(1, 11):
            scene.confirmed(f"k{number}")
            deliver_once(pass_s=0.5, drain=False)
        wait_until(lambda: good.deliveries.filter(state="ACKED").count() == 11, within_s=30, what="all told")
        assert DeliveryTry.objects.filter(delivery__destination=bad, ended_at=None).count() == 4
        assert len(hanging.received()) == 4
        hanging.kill()
    stop_sending()
    assert Delivery.objects.filter(destination=bad, state="ACKED").count() == 0


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
