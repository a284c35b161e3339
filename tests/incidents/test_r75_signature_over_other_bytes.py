"""R75: the signature was checked against JSON that had been encoded again.

Kind: a signature over something made again.

What is signed is what is sent, and what is sent is stored before the first try: later tries, another version
of this program and a person's replay all send those bytes.
"""

from __future__ import annotations

import json

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from ledger import outbox
from ledger.deliveries import deliver_once
from ledger.models import Delivery
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import Scene
from tests.ledger.deliveries.helping import destination, make_due, redelivered
from tests.support import make
from tests.support.consumer import ConsumerProcess

AWKWARD = 'é/1.0 "\\" \u2028 \U0001f9fe <&> 1e400 0.1000'


def told_awkwardly(scene: Scene) -> Delivery:
    make.policy(scene.people.tenant)
    make.confirmed(scene.people.key, result_ref=AWKWARD, operation_key="rechnung/ä/1.0")
    return Delivery.objects.get()


def test_the_raw_bytes_verify_and_no_others(scene: Scene, consumer: ConsumerProcess) -> None:
    _, secret = destination(scene.people, consumer)
    told_awkwardly(scene)
    deliver_once()
    (received,) = consumer.received()
    headers = dict(received.headers)
    assert Webhook(secret).verify(received.body, headers)["data"]["result_ref"] == AWKWARD
    for again in (json.dumps(received.event), json.dumps(received.event, indent=1, ensure_ascii=False)):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(again, headers)
    nothing_else_went_wrong(scene)


def test_tries_before_and_after_another_version_and_a_replay_are_the_same_bytes(
    scene: Scene, consumer: ConsumerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, secret = destination(scene.people, consumer)
    delivery = told_awkwardly(scene)
    consumer.answer(503)
    deliver_once()
    monkeypatch.setattr(outbox, "cloud_event", lambda *_: b'{"another": "version"}')
    consumer.answer(200)
    make_due()
    deliver_once()
    redelivered(scene.people, delivery)
    deliver_once()
    received = consumer.received()
    assert len(received) == 3
    assert len({one.body for one in received}) == len({one.webhook_id for one in received}) == 1
    for one in received:
        Webhook(secret).verify(one.body, dict(one.headers))
    nothing_else_went_wrong(scene)
