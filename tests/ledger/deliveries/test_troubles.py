"""The doctor names a destination that hears nothing as things stand, and what mends it."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.fernet import Fernet

from ledger.deliveries import pause
from ledger.events import SYSTEM
from ledger.models import Destination
from ledger.rules.deliveries import PauseReason
from ledger.transactions import database_clock, durable
from tests.ledger.commands.support import run
from tests.ledger.deliveries.helping import URL, destination
from tests.support.cast import Cast

pytestmark = pytest.mark.django_db


def said() -> list[tuple[str, str, str]]:
    findings: list[dict[str, Any]] = run("doctor").data["findings"]
    return [
        (found["subject"], found["detail"], found["mend"])
        for found in findings
        if found["subject"].startswith("destination")
    ]


def test_nothing_is_said_of_none_and_one_line_of_those_that_are_well(people: Cast) -> None:
    assert said() == []
    destination(people, URL)
    assert said() == [("destinations", "signed for, and none paused or only failing", "")]


def test_one_without_a_secret(people: Cast) -> None:
    Destination.objects.create(tenant=people.tenant, name="old", url=URL, ack="response")
    ((about, detail, mend),) = said()
    assert about == "destination old of acme"
    assert "has no secret" in detail
    assert "rotate" in mend


def test_one_whose_secret_was_sealed_with_another_key(people: Cast, settings: Any) -> None:
    destination(people, URL)
    settings.LEDGER_SEALING_KEYS = (Fernet.generate_key().decode(),)
    ((_, detail, mend),) = said()
    assert "LEDGER_SEALING_KEYS" in detail
    assert "LEDGER_SEALING_KEYS" in mend


def test_paused_and_only_failing_ones(people: Cast) -> None:
    paused, _ = destination(people, URL, name="a")
    destination(people, URL, name="b", failures=7, failing_since=database_clock())
    destination(people, URL, name="c", failures=4, failing_since=database_clock())
    durable(lambda: pause(paused, PauseReason.GONE, actor=SYSTEM, now=database_clock()))
    (first, second) = said()
    assert first[1].startswith("paused (gone) since ")
    assert second[1].startswith("only fails: 7 tries in a row since ")


def test_a_suspended_tenant_is_left_out(people: Cast) -> None:
    Destination.objects.create(tenant=people.tenant, name="old", url=URL, ack="response")
    people.tenant.suspended_at = database_clock()
    people.tenant.save(update_fields=["suspended_at"])
    assert not any(mend for _, _, mend in said())
