"""What a monitor reads at /metrics."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from ledger.models import FsckRun
from ledger.transactions import database_clock
from tests.support import make
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
