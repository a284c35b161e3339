"""What a monitor reads at /metrics."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from ledger import deliveries
from ledger.events import SYSTEM
from ledger.models import Delivery, FsckRun
from ledger.queries import delivery_numbers, delivery_times
from ledger.rules.deliveries import PauseReason
from ledger.transactions import database_clock, durable
from tests.support import make, told
from tests.support.cast import cast

pytestmark = pytest.mark.django_db


def test_it_counts_attempts_items_and_refusals(client: Client) -> None:
    key = cast().key
    make.confirmed(key)
    make.for_a_person(key)
    make.posted(key, make.intent_of("nobody.knows", args={}))
    text = client.get("/metrics").content.decode()
    assert 'ledger_attempts{state="MANUAL_REVIEW"} 1.0' in text
    assert 'ledger_confirmed{by="agent"} 1.0' in text
    assert 'ledger_open_items{reason="no_lookup"} 1.0' in text
    assert 'ledger_refused_intents{reason="policy-refused"} 1.0' in text
    assert 'ledger_oldest_attempt_seconds{state="MANUAL_REVIEW"}' in text


def test_it_tells_how_deliveries_are(client: Client) -> None:
    people = cast()
    books, crm = told.destination(people.tenant), told.destination(people.tenant, "crm")
    for _ in range(delivery_times.LEAST_TIMES):
        make.confirmed(people.key)
    for delivery in Delivery.objects.filter(destination=books):
        told.acked(delivery, people.key, duplicate=True)
    durable(
        lambda: deliveries.pause(
            books, PauseReason.PERSON, actor=SYSTEM, now=database_clock(), why="they asked"
        )
    )
    text = client.get("/metrics").content.decode()
    for line in (
        'ledger_deliveries{state="ACKED"} 5.0',
        f'ledger_undelivered{{destination="{crm.pk}"}} 5.0',
        f'ledger_oldest_undelivered_seconds{{destination="{crm.pk}"}}',
        'ledger_duplicates_seen{by="consumer"} 5.0',
        'ledger_paused_destinations{reason="person"} 1.0',
        'ledger_acknowledged_seconds{quantile="0.5"}',
        'ledger_acknowledged_seconds{quantile="0.95"}',
    ):
        assert line in text, line
    assert books.pk not in text


def test_destinations_are_labels_only_as_far_as_the_fifty_that_wait_longest(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_numbers, "MOST_DESTINATIONS", 2)
    people = cast()
    for number in range(4):
        told.destination(people.tenant, f"books-{number}")
        make.confirmed(people.key)
    text = client.get("/metrics").content.decode()
    counted = [line for line in text.splitlines() if line.startswith("ledger_undelivered{")]
    assert len(counted) == 3
    assert 'ledger_undelivered{destination="other"} 3.0' in counted
    assert sum(float(line.rpartition(" ")[2]) for line in counted) == Delivery.objects.count() == 10
    assert 'ledger_oldest_undelivered_seconds{destination="other"}' in text


def test_a_quantile_of_too_few_is_not_told(client: Client) -> None:
    people = cast()
    told.destination(people.tenant)
    make.confirmed(people.key)
    told.acked(Delivery.objects.get(), people.key)
    assert "ledger_acknowledged_seconds{" not in client.get("/metrics").content.decode()


def test_it_tells_what_the_newest_fsck_found_and_when(client: Client) -> None:
    now = database_clock()
    FsckRun.objects.create(form="whole", started_at=now, ended_at=now, invariants=50, findings_count=1)
    text = client.get("/metrics").content.decode()
    assert 'ledger_fsck_findings{form="whole"} 1.0' in text
    assert 'ledger_fsck_age_seconds{form="whole"}' in text
    assert 'form="touched"' not in text


def test_elsewhere_than_in_development_it_wants_the_token(client: Client, settings: Any) -> None:
    settings.DEVELOPMENT = False
    assert client.get("/metrics").status_code == 401
    settings.LEDGER_METRICS_TOKEN = "t"
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers={"Authorization": "Bearer t"}).status_code == 200
