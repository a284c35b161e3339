"""R72: a cursor over a sequence skips late commits.

Kind: a reader that only looks ahead.

Nothing here remembers how far it has read: what is sent is chosen by its state and its time.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from django.db import connection

from ledger import lifecycle
from ledger.deliveries import deliver_once
from ledger.lifecycle import OutcomeReport
from ledger.models import Attempt, Delivery
from ledger.transactions import durable
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import Scene
from tests.ledger.deliveries.helping import destination
from tests.support import make
from tests.support.consumer import ConsumerProcess

SUCCEEDED = OutcomeReport(worker_id="worker-1", outcome="succeeded", result_ref="early")


@pytest.mark.parametrize("later_ones", [1, 5])
def test_what_got_its_id_first_and_committed_last_is_sent(
    scene: Scene, consumer: ConsumerProcess, later_ones: int
) -> None:
    destination(scene.people, consumer)
    make.policy(scene.people.tenant)
    sent = make.dispatched(scene.people.key)
    written, commit = Event(), Event()

    def settle_slowly(attempt: Attempt) -> None:
        def settle() -> None:
            lifecycle.record_outcome(key=scene.people.key, attempt_id=attempt.pk, report=SUCCEEDED)
            written.set()
            commit.wait(30)

        try:
            durable(settle)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(settle_slowly, sent)
        assert written.wait(30)
        for _ in range(later_ones):
            make.confirmed(scene.people.key)
        assert deliver_once().states == {"ACKED": later_ones}
        commit.set()
        slow.result()
    assert deliver_once().states == {"ACKED": 1}

    first = Delivery.objects.get(operation=sent.operation_id)
    assert first.pk == min(Delivery.objects.values_list("pk", flat=True))
    assert consumer.received()[-1].webhook_id == first.webhook_id
    assert len(consumer.received()) == later_ones + 1
    nothing_else_went_wrong(scene)
