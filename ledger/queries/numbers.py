"""The numbers a monitor asks for, over all tenants or some, by labels of bounded lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from django.db.models import Count, Min, Q, QuerySet

from ledger.models import Attempt, ParkedFact, Provider, Pulse, Refusal, ReviewItem, Statement
from ledger.queries.delivery_numbers import delivery_numbers
from ledger.queries.fsck import newest_runs
from ledger.queries.measures import Number, Scope, counts
from ledger.queries.parked import OPEN, fullest, recorded_after_send
from ledger.rules.states import State

_WAITING = (State.DISPATCHED, State.UNKNOWN, State.MANUAL_REVIEW)


__all__ = ["Number", "Scope", "numbers", "numbers_of_work"]


def numbers(now: datetime) -> Iterator[Number]:
    """Every number, read now. Ages are seconds."""
    yield from numbers_of_work(now, Scope())
    pulses = {pulse.name: (now - pulse.at).total_seconds() for pulse in Pulse.objects.all()}
    yield Number(
        "ledger_pulse_age_seconds", "Since a part of the system last ran to its end.", "part", pulses
    )
    yield from _of_fsck(now)


def numbers_of_work(now: datetime, scope: Scope) -> Iterator[Number]:
    """What concerns the work of tenants, and not the system as a whole."""
    attempts = scope.of(Attempt)
    yield Number("ledger_attempts", "Attempts by state.", "state", counts(attempts, "state"))
    oldest = attempts.filter(state__in=_WAITING).values_list("state").annotate(Min("entered_state_at"))
    yield Number(
        "ledger_oldest_attempt_seconds",
        "Age in its state of the oldest attempt that is not settled.",
        "state",
        {state: (now - since).total_seconds() for state, since in oldest},
    )
    yield Number(
        "ledger_overdue_seconds",
        "How long what has waited longest is due and nobody has taken it up.",
        "what",
        {what: (now - since).total_seconds() for what, since in _overdue(now, attempts)},
    )
    confirmed = attempts.exclude(confirmed_by="")
    yield Number(
        "ledger_confirmed", "Confirmed attempts by whose evidence.", "by", counts(confirmed, "confirmed_by")
    )
    said = scope.of(Statement)
    yield Number(
        "ledger_statements", "What people said became of it, by answer.", "answer", counts(said, "says")
    )
    yield Number(
        "ledger_statements_contradicted",
        "How many of those a fact contradicted, then or later.",
        "answer",
        {"happened": 0, "did_not": 0} | counts(said.filter(contradicted_at__isnull=False), "says"),
    )
    open_items = scope.of(ReviewItem).filter(closed_at=None)
    yield Number("ledger_open_items", "Open review items by reason.", "reason", counts(open_items, "reason"))
    refusals = counts(scope.of(Refusal), "reason")
    yield Number("ledger_refused_intents", "Refused intents by reason.", "reason", refusals)
    yield from delivery_numbers(now, scope)
    providers = scope.of(Provider)
    unreachable = counts(providers.exclude(unavailable_since=None), "adapter")
    yield Number("ledger_providers_unavailable", "Providers that do not answer.", "adapter", unreachable)
    refused_credentials = counts(providers.exclude(refused_credential=""), "adapter")
    yield Number(
        "ledger_credentials_refused",
        "Providers that refuse our credential.",
        "adapter",
        refused_credentials,
    )
    yield from _parked(now, scope)


def _of_fsck(now: datetime) -> Iterator[Number]:
    runs = newest_runs()
    yield Number(
        "ledger_fsck_findings",
        "Places where an invariant is broken, by the newest fsck of each form.",
        "form",
        {run.form: run.findings_count for run in runs},
    )
    yield Number(
        "ledger_fsck_age_seconds",
        "Since the newest fsck of each form began.",
        "form",
        {run.form: (now - run.started_at).total_seconds() for run in runs},
    )


def _parked(now: datetime, scope: Scope) -> Iterator[Number]:
    """Facts about what the ledger does not know: watch them before a tenant's limit is reached."""
    facts = scope.of(ParkedFact)
    standings = facts.aggregate(
        waiting=Count("pk", filter=OPEN),
        dismissed=Count("pk", filter=Q(joined_at=None, dismissed_at__isnull=False)),
        joined=Count("joined_at"),
    )
    waiting = facts.filter(OPEN)
    oldest = waiting.aggregate(oldest=Min("parked_at"))["oldest"]
    yield Number("ledger_parked_facts", "Facts told too early or about nothing known.", "standing", standings)
    seconds = {} if oldest is None else {"waiting": (now - oldest).total_seconds()}
    yield Number("ledger_oldest_parked_fact_seconds", "Age of the oldest that waits.", "standing", seconds)
    yield Number(
        "ledger_parked_facts_fullest",
        "Share of its limit in the tenant that has most; at 1 its further facts are sent back.",
        "standing",
        {"waiting": fullest(waiting)},
    )
    yield Number(
        "ledger_broken_guarantees",
        "Attempts of which the agent broke a rule the ledger cannot enforce.",
        "how",
        {"recorded_after_send": recorded_after_send(facts)},
    )


def _overdue(now: datetime, attempts: QuerySet[Attempt]) -> Iterator[tuple[str, datetime]]:
    """What passes of recovery take up by themselves, since when it has been due."""
    waiting: Mapping[str, tuple[str, QuerySet[Attempt]]] = {
        "look_up": (
            "next_check_at",
            attempts.filter(Q(lookup_lease_until=None) | Q(lookup_lease_until__lte=now)),
        ),
        "send_lease": ("lease_until", attempts.filter(state=State.DISPATCHED)),
        "start": ("start_by", attempts),
    }
    for what, (column, rows) in waiting.items():
        since = rows.filter(**{f"{column}__lte": now}).aggregate(since=Min(column))["since"]
        if since is not None:
            yield what, since
