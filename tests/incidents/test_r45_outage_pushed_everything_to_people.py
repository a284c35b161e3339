"""R45: An outage of a provider must not push everything to people.

Kind: absence of an answer taken for an answer. Unreachable and unresolved for too long are two things:
nothing is escalated for its age while nobody could ask, and a person is called for what a reachable provider
cannot say. domain.md says the same.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models import F

from ledger.models import Attempt, LookUp, Provider, ReviewItem
from ledger.reconciliation import reconcile_once
from ledger.rules.keys import correlation_id
from ledger.rules.reconcile import LookedUpKind
from ledger.transactions import database_clock
from tests.crash.world import ARGS, REFUND
from tests.incidents.awaiting import asked_at, lost, provider_behind_a_line, states, unknown
from tests.support import make
from tests.support.cast import cast
from tests.support.proxy import down, honest

pytestmark = pytest.mark.django_db
MANY = 25
PASSES = 12
TWO_HOURS = timedelta(hours=2)


def next_probe() -> None:
    """The wait until then is over, for the provider and for every attempt."""
    Provider.objects.update(probe_at=database_clock())
    Attempt.objects.filter(state="UNKNOWN").update(next_check_at=database_clock())


def hours_pass() -> None:
    Attempt.objects.filter(state="UNKNOWN").update(
        entered_state_at=F("entered_state_at") - TWO_HOURS, lease_ended_at=F("lease_ended_at") - TWO_HOURS
    )
    ReviewItem.objects.update(due_at=F("due_at") - TWO_HOURS)


def test_nothing_is_escalated_while_nobody_could_ask(tmp_path: Path) -> None:
    people = cast()
    with provider_behind_a_line(tmp_path) as (provider, line):
        asked_at(line.url, people.tenant)
        lost(people.key, provider, MANY)
        line.fault = down
        for _ in range(PASSES):
            hours_pass()
            next_probe()
            reconcile_once()
        assert states(people.tenant) == {"UNKNOWN"}
        assert Attempt.objects.filter(checks__gt=0).count() == 0
        # one at a time finds out whether it is back, however many wait
        assert len(line.requests) <= PASSES + 1
        assert Provider.objects.get(name="refunds").unavailable_since is not None

        line.fault = honest
        next_probe()
        while reconcile_once().more:
            pass
        assert states(people.tenant) == {"OUTCOME_CONFIRMED"}
        assert Provider.objects.get(name="refunds").unavailable_since is None
        assert provider.total_effects() == MANY


def test_what_a_reachable_provider_cannot_say_is_for_a_person(tmp_path: Path) -> None:
    people = cast()
    with provider_behind_a_line(tmp_path) as (provider, line):
        asked_at(line.url, people.tenant)
        attempt = make.unknown(people.key, REFUND, args=ARGS[REFUND])
        limit = 20  # max_checks
        for _ in range(limit):
            make.looked_up(attempt, LookedUpKind.UNAVAILABLE)
        assert unknown(people.tenant) == 1
        provider.set_mode("in_progress")
        provider.send("refunds", {**ARGS[REFUND], "metadata": {"correlation_id": mark(attempt)}})
        for _ in range(limit):
            next_probe()
            reconcile_once()
    attempt = make.fresh(attempt)
    assert (attempt.state, attempt.reason) == ("MANUAL_REVIEW", "unresolved")
    assert LookUp.objects.filter(answer="found").count() == limit


def mark(attempt: Attempt) -> str:
    return correlation_id(str(attempt.tenant_id), attempt.operation.operation_key)
