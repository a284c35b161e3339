"""R71: the broker was down, and the first message vanished without an error.

Kind: a message trusted to arrive.

The delivery is a row of the settling transaction; a message only says "look now". No test of this folder has
a broker, so every one that delivers shows it; here each way to lose the message is taken by itself.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from celery import current_app

from ledger import outbox
from ledger.deliveries import deliver_once
from ledger.models import ApiKey, Attempt, Delivery
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import Scene
from tests.ledger.deliveries.helping import destination, told
from tests.support import make
from tests.support.beside import database_url_of_tests
from tests.support.consumer import ConsumerProcess
from tests.support.processes import wait_until
from tests.support.serving import ROOT

ROUNDS = 12


def loses_it(*_: object, **__: object) -> None:
    """Takes the message, says nothing, and it is gone."""


def fails(*_: object, **__: object) -> None:
    raise ConnectionError("the broker is down")


def never_comes_back(*_: object, **__: object) -> None:
    threading.Event().wait(3600)


@pytest.mark.parametrize("broker", [loses_it, fails, never_comes_back])
def test_whatever_the_broker_does_the_sweep_sends_it(
    scene: Scene,
    consumer: ConsumerProcess,
    monkeypatch: pytest.MonkeyPatch,
    broker: Callable[..., Any],
) -> None:
    asked = threading.Event()

    def send_task(*what: object, **how: object) -> None:
        asked.set()
        broker(*what, **how)

    monkeypatch.setattr(current_app, "send_task", send_task)
    monkeypatch.setattr(outbox, "_hints", None)
    monkeypatch.setattr(outbox, "QUIET_S", 0.0)
    destination(scene.people, consumer)
    make.policy(scene.people.tenant)
    for _ in range(ROUNDS):
        told(scene.people)
    assert Delivery.objects.filter(state="PENDING").count() == ROUNDS
    wait_until(asked.is_set, within_s=10, what="a hint was tried")
    deliver_once(pass_s=60)
    assert Delivery.objects.filter(state="ACKED").count() == ROUNDS == len(consumer.received())
    nothing_else_went_wrong(scene)


def test_killed_between_the_commit_and_the_hint(scene: Scene, consumer: ConsumerProcess) -> None:
    destination(scene.people, consumer)
    make.policy(scene.people.tenant)
    sent = make.dispatched(scene.people.key)
    assert unhinted(scene.people.key, sent) == -signal.SIGKILL
    assert make.fresh(sent).state == "OUTCOME_CONFIRMED"
    delivery = Delivery.objects.get(operation=sent.operation_id)
    assert (delivery.state, consumer.received()) == ("PENDING", [])
    assert deliver_once().states == {"ACKED": 1}
    assert [one.webhook_id for one in consumer.received()] == [delivery.webhook_id]
    nothing_else_went_wrong(scene)


def unhinted(key: ApiKey, attempt: Attempt) -> int:
    """A process of its own settles it, and kills itself where the hint would be given; its exit code."""
    return subprocess.run(
        [sys.executable, "-m", "tests.incidents.unhinted", key.key_id, attempt.pk],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": database_url_of_tests()},
        check=False,
        timeout=60,
    ).returncode
