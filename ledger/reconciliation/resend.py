"""Executor `ledger`: one pass of the ledger's own sender.

1. An attempt that an agent would be told to dispatch is picked, and its provider is made ready.
2. Leave is asked for through the one door, and committed.
3. Right before sending it is asked whether leave holds: the lease and authority at the database's clock.
4. The request is sent once, outside any transaction.
5. What its answer proves is recorded, and judged like an agent's report.

Killed after 2, the lease runs out and the provider is asked, as for an agent.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from django.db import close_old_connections

from ledger.faults import fault_point
from ledger.http import all_within
from ledger.lifecycle import (
    LeaveGiven,
    LeaveRefused,
    OutcomeReport,
    give_leave_to_ledger,
    keep_waiting,
    leave_still_holds,
    record_own_outcome,
)
from ledger.models import Attempt, Provider
from ledger.models.ids import leave_id, sender_id
from ledger.policies import rule_in_force, rule_of, rule_of_next_send
from ledger.providers.base import AdapterMisconfigured, SendAnswer, SendingAdapter, SentKind
from ledger.providers.pace import shared
from ledger.providers.registry import sender_for
from ledger.pulses import beat
from ledger.reconciliation.apart import apart, is_locked
from ledger.reconciliation.asking import question_about
from ledger.reconciliation.claims import provider_named
from ledger.reconciliation.due_sends import due_sends, put_off
from ledger.reconciliation.health import note_answer
from ledger.reconciliation.turns import SharedTurns
from ledger.rules.looked_up import LookedUpKind
from ledger.rules.policy import Rule
from ledger.rules.reports import ErrorClass, Reported
from ledger.transactions import DATABASE_GONE, Busy, database_clock, durable, monotonic_s

logger = logging.getLogger(__name__)

BATCH = 20
LOOKED_AT = 200
PASS_S = 3.0
SEND_S = 15.0
"""For one send. With the pass it ends before a worker's task is stopped; the lease may end it sooner."""
LONGEST_WAIT_S = 0.5
"""For a provider's next turn; else others come first."""
REST_S = 10.0
"""How long nobody sends anything more through a provider that was not there."""
RECORD_WITHIN_S = 10.0
"""From here on an answer that cannot be recorded is given up; where the task's own end comes first, then."""
RECORD_AGAIN_S = 0.2
CANNOT_SEND = "provider-cannot-send"


@dataclass
class SendReport:
    """What one pass did: sends and what they led to, refused leaves, attempts nobody could send, attempts
    whose provider rests, and whether it stopped before everything due was asked for."""

    sent: int = 0
    sends_refused: int = 0
    cannot_send: int = 0
    resting: int = 0
    more: bool = False
    outcomes: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class _Way:
    """How something can be sent."""

    provider: Provider
    adapter: SendingAdapter


@dataclass
class _Pass:
    """One pass: its name as a worker, and for how long it puts off what."""

    worker_id: str
    report: SendReport
    turns: SharedTurns = field(default_factory=SharedTurns)
    rests: dict[str, float] = field(default_factory=dict)


def send_once(*, at_most: int = BATCH) -> SendReport:
    """Send what is due, at most so many or for a few seconds. A provider that cannot be reached is tried once
    and then left alone by every pass for a while, so that an outage costs the attempts that wait for it
    nothing, and those that wait for others little. One that fails keeps no other waiting."""
    this = _Pass(sender_id(), SendReport())
    ends_at = monotonic_s() + PASS_S
    with shared(this.turns):
        for attempt_id in due_sends(at_most=LOOKED_AT):
            if this.report.sent >= at_most or monotonic_s() >= ends_at:
                this.report.more = True
                break
            if not is_locked(attempt_id):
                apart(attempt_id, partial(_try, this, attempt_id))
    put_off(this.rests)
    this.report.resting = len(this.rests)
    beat("send")
    return this.report


def _try(this: _Pass, attempt_id: str) -> None:
    attempt = _read(attempt_id)
    in_force = rule_in_force(attempt.tenant_id, attempt.tool)
    try:
        way = _way_by(rule_of_next_send(attempt, in_force), attempt.tenant_id)
    except AdapterMisconfigured as why:
        logger.warning("The ledger cannot send %s: %s", attempt_id, why)
        durable(lambda: keep_waiting(attempt_id=attempt_id, because=CANNOT_SEND))
        this.report.cannot_send += 1
        return
    rest_s = max(this.turns.next_in_s(_sends_through(way.provider)), way.adapter.wants_rest_s())
    if rest_s > LONGEST_WAIT_S:
        this.rests[attempt_id] = math.ceil(rest_s)
    else:
        _ask_and_send(this, attempt_id)


def _ask_and_send(this: _Pass, attempt_id: str) -> None:
    life = leave_id()
    leave = durable(lambda: _leave(attempt_id, this.worker_id, life))
    if isinstance(leave, LeaveRefused):
        this.report.sends_refused += 1
        return
    fault_point("sender.leave_committed")
    sent = _read(leave.attempt.pk)
    this.report.sent += 1
    try:
        way = _way_by(rule_of(sent), sent.tenant_id)
    except AdapterMisconfigured as why:
        _record(this, sent, SendAnswer(kind=SentKind.NOT_SENT, detail=str(why)))
        return
    answer = _send(sent, way, life)
    fault_point("sender.sent")
    _record(this, sent, answer)
    _note(this, way.provider, answer)


def _leave(attempt_id: str, worker_id: str, life: str) -> LeaveGiven | LeaveRefused:
    return give_leave_to_ledger(attempt_id=attempt_id, worker_id=worker_id, leave_id=life)


def _send(sent: Attempt, way: _Way, life: str) -> SendAnswer:
    """Send once, if leave still holds; whatever is not certain is unknown."""
    again = durable(lambda: leave_still_holds(attempt_id=sent.pk, worker_id=sent.worker_id, leave_id=life))
    if isinstance(again, LeaveRefused):
        why = ", ".join(again.reasons) or again.problem
        return SendAnswer(kind=SentKind.NOT_SENT, detail=f"Leave did not hold until it was sent: {why}")
    asked_at = monotonic_s()
    ends_at = asked_at + min(_lease_left_s(again.attempt), SEND_S)
    question = question_about(sent)
    fault_point("sender.before_send")
    left_s = ends_at - monotonic_s()
    if left_s <= 0:
        return SendAnswer(kind=SentKind.NOT_SENT, detail="The lease was over before it was sent.")
    try:
        with all_within(left_s):
            return way.adapter.send(question)
    except Exception as error:
        logger.exception("The adapter of provider %s failed to send %s", way.provider.name, sent.pk)
        return SendAnswer(kind=SentKind.UNKNOWN, detail=f"{type(error).__name__}: {error}"[:1000])


def _lease_left_s(attempt: Attempt) -> float:
    if attempt.lease_until is None:
        return 0.0
    return (attempt.lease_until - database_clock()).total_seconds()


def _record(this: _Pass, sent: Attempt, answer: SendAnswer) -> None:
    """What the provider answered is known here alone: where it cannot be recorded, it is at least said."""
    report = _as_report(this.worker_id, answer)
    try:
        state = _again_where_away(lambda: durable(lambda: _record_one(sent.pk, report)))
    except Exception:
        logger.error(  # noqa: TRY400  (the trace is logged by who catches it)
            "The answer about %s is not recorded: %s, reference %r, request id %r",
            *(sent.pk, answer.kind, answer.reference, answer.request_id),
        )
        raise
    this.report.outcomes[state] += 1


def _again_where_away(record: Callable[[], str]) -> str:
    """Record it, again for a while where the database was away, or the rows stayed locked: the same words
    again are the same report."""
    ends_at = monotonic_s() + RECORD_WITHIN_S
    while True:
        try:
            return record()
        except (Busy, *DATABASE_GONE):
            if monotonic_s() >= ends_at:
                raise
            time.sleep(RECORD_AGAIN_S)
            close_old_connections()


def _record_one(attempt_id: str, report: OutcomeReport) -> str:
    state = record_own_outcome(attempt_id=attempt_id, report=report).standing.attempt.state
    fault_point("sender.before_commit")
    return state


def _as_report(worker_id: str, answer: SendAnswer) -> OutcomeReport:
    """The answer in the words in which an agent would report it."""
    if answer.kind is SentKind.ACCEPTED:
        return OutcomeReport(worker_id, Reported.SUCCEEDED, answer.reference, answer.request_id)
    if answer.kind is SentKind.UNKNOWN:
        return OutcomeReport(worker_id, Reported.UNKNOWN, "", answer.request_id, message=answer.detail)
    not_sent = answer.kind is SentKind.NOT_SENT
    return OutcomeReport(
        worker_id,
        Reported.FAILED,
        no_effect=True,
        retryable=not_sent,
        error_class=ErrorClass.NOT_CONNECTED if not_sent else answer.error_class,
        message=answer.detail,
    )


def _note(this: _Pass, provider: Provider, answer: SendAnswer) -> None:
    if answer.reachable is None:
        return
    kind = LookedUpKind.FOUND if answer.reachable else LookedUpKind.UNAVAILABLE
    note_answer(provider, kind, refused_credential=answer.refused_credential)
    if not answer.reachable or answer.refused_credential:
        this.turns.hold(_sends_through(provider), REST_S)


def _sends_through(provider: Provider) -> str:
    return f"sends through provider {provider.pk}"


def _read(attempt_id: str) -> Attempt:
    return Attempt.objects.select_related("operation", "policy").get(pk=attempt_id)


def _way_by(rule: Rule, tenant_id: int) -> _Way:
    """Through which provider a send under this rule goes. Raises AdapterMisconfigured."""
    provider = provider_named(tenant_id, rule.provider)
    if provider is None:
        raise AdapterMisconfigured("", f"No provider named {rule.provider!r} is configured.")
    return _Way(provider, sender_for(provider))
