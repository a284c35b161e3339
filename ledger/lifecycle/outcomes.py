"""What is reported about what was sent, by agents or by the ledger itself. Facts are always accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from ledger.authority import as_stored
from ledger.events import SENDER, agent_actor
from ledger.lifecycle.case import Case
from ledger.lifecycle.freshness import lease_end, made_due
from ledger.lifecycle.locking import locked_attempt
from ledger.lifecycle.moves import move, void_all_approvals
from ledger.lifecycle.runs import count_usage_of
from ledger.lifecycle.settled_by import (
    confirm,
    fail,
    is_same_effect,
    open_conflict,
    supersede,
    to_review,
)
from ledger.lifecycle.standing import standing_in
from ledger.lifecycle.values import MOST_MESSAGE, OutcomeAnswer, OutcomeReport, Standing
from ledger.models import ApiKey, Attempt
from ledger.policies import rule_of, veil_over
from ledger.rules.reports import Report, Reported, ReportFacts, Settles, judge
from ledger.rules.states import FINAL, OPEN_QUESTION, State
from ledger.rules.vocabulary import ConfirmedBy, EventKind, FailedBy, ReviewReason

_PARKED = "parked"
_LEASE_AT_MOST = 20  # times the dispatch timeout, counted from leave


def record_outcome(*, key: ApiKey, attempt_id: str, report: OutcomeReport) -> OutcomeAnswer:
    """Store what the agent says, and settle what it settles. The same report again changes nothing."""
    with locked_attempt(attempt_id, tenant_id=key.tenant_id, actor=agent_actor(key.agent)) as (case, attempt):
        return apply_outcome(case, attempt, report, as_stored(key))


def record_own_outcome(*, attempt_id: str, report: OutcomeReport) -> OutcomeAnswer:
    """Store what became of a send that the ledger made itself: judged like an agent's report."""
    with locked_attempt(attempt_id, tenant_id=None, actor=SENDER) as (case, attempt):
        return apply_outcome(case, attempt, report, None)


def apply_outcome(
    case: Case,
    attempt: Attempt,
    report: OutcomeReport,
    key: ApiKey | None,
    parked: Mapping[str, Any] | None = None,
    *,
    may_be_about_another: bool = False,
) -> OutcomeAnswer:
    """Store one report about an attempt of a locked operation, with what it settles. `parked`: where it
    waited before, for the history. `may_be_about_another`: it does not say which send it means."""
    if report.message:  # hidden first: of what is cut in two, neither half is recognised for certain
        report = replace(report, message=veil_over(attempt).over_text(report.message)[:MOST_MESSAGE])
    said = report.as_data | by_revoked(key)
    if _was_told(attempt, EventKind.OUTCOME_REPORTED, said):
        return OutcomeAnswer(standing_in(case, attempt), evidence_only=False, replayed=True)
    case.record(EventKind.OUTCOME_REPORTED, attempt, **said, **_waited(parked))
    heard = _as_far_as_believed(attempt, key, report, may_be_about_another=may_be_about_another)
    follows = _judged(case, attempt, key, heard, report)
    _keep_evidence(case, attempt, report, trusted=not _is_revoked(key))
    _apply(case, attempt, follows, report)
    if not _is_revoked(key):
        count_usage_of(case, attempt, report.usage)
    return OutcomeAnswer(standing_in(case, attempt), evidence_only=_settled_nothing(follows), replayed=False)


def record_provider_request(
    *, key: ApiKey, attempt_id: str, worker_id: str, provider_request_id: str
) -> Standing:
    """Store the provider's request id the moment it is known; a second, different one is for a person."""
    with locked_attempt(attempt_id, tenant_id=key.tenant_id, actor=agent_actor(key.agent)) as (case, attempt):
        return apply_provider_request(case, attempt, as_stored(key), worker_id, provider_request_id)


def apply_provider_request(
    case: Case,
    attempt: Attempt,
    key: ApiKey,
    worker_id: str,
    provider_request_id: str,
    parked: Mapping[str, Any] | None = None,
) -> Standing:
    """Store the provider's request id of an attempt of a locked operation; `parked` as in `apply_outcome`."""
    said = {"worker_id": worker_id, "provider_request_id": provider_request_id, **by_revoked(key)}
    if _was_told(attempt, EventKind.PROVIDER_REQUEST, said):
        return standing_in(case, attempt)
    case.record(EventKind.PROVIDER_REQUEST, attempt, **said, **_waited(parked))
    sent = OutcomeReport(worker_id, Reported.UNKNOWN, "", provider_request_id)
    follows = _judged(case, attempt, key, sent.as_rule, sent)
    expected = follows.row in ("lost_contact", "final")
    void_all_approvals(case, "provider request id reported")
    _keep_reference(case, attempt, provider_request_id, trusted=key.revoked_at is None)
    if not expected:
        _apply(case, attempt, follows, sent)
    return standing_in(case, attempt)


def extend_lease(*, key: ApiKey, attempt_id: str, worker_id: str, lease_epoch: int) -> datetime | None:
    """A sign of life moves the send lease's end, never beyond 20 dispatch timeouts after leave. None: the
    lease is another's, or over."""
    with locked_attempt(attempt_id, tenant_id=key.tenant_id, actor=agent_actor(key.agent)) as (case, attempt):
        if not _holds_lease(case, attempt, as_stored(key), worker_id, lease_epoch):
            return None
        timeout = timedelta(seconds=rule_of(attempt).dispatch_timeout_s)
        dispatched_at = attempt.dispatched_at or case.now
        wanted = min(case.now + timeout, dispatched_at + _LEASE_AT_MOST * timeout)
        until = max(lease_end(attempt, wanted, now=case.now), attempt.lease_until or case.now)
        case.change(attempt, lease_until=until)
        case.record(EventKind.LEASE_EXTENDED, attempt, until=until.isoformat())
        return until


def declare_worker_dead(*, key: ApiKey, worker_id: str) -> list[Standing]:
    """The DISPATCHED attempts of a process of this agent that is no more become UNKNOWN at once. Answers
    with all it sent that is still an open question, so that asking again gives the same list."""
    sent_by_it = Attempt.objects.filter(
        tenant_id=key.tenant_id,
        agent=key.agent,
        worker_id=worker_id,
        state__in=[State.DISPATCHED, *OPEN_QUESTION],
    )
    standings = []
    for attempt_id in sent_by_it.order_by("operation_id").values_list("pk", flat=True):
        with locked_attempt(attempt_id, tenant_id=key.tenant_id, actor=agent_actor(key.agent)) as (
            case,
            attempt,
        ):
            if attempt.state == State.DISPATCHED:
                said = {"worker_id": worker_id, "because": "its agent declared the process dead"}
                move(case, attempt, State.UNKNOWN, reason=ReviewReason.UNKNOWN, said=said)
            standings.append(standing_in(case, attempt))
    return standings


def _judged(
    case: Case, attempt: Attempt, key: ApiKey | None, heard: Report, report: OutcomeReport
) -> Settles:
    confirmed, request_id = case.confirmed, report.provider_request_id
    references = {report.result_ref, request_id}
    facts = ReportFacts(
        state=State(attempt.state),
        sent=attempt.was_sent,
        reason=ReviewReason(attempt.reason) if attempt.reason else None,
        key_revoked=_is_revoked(key),
        confirm_by_lookup=rule_of(attempt).confirm == "lookup",
        other_confirmed=confirmed is not None and confirmed.pk != attempt.pk,
        same_effect=confirmed is not None and is_same_effect(confirmed, references),
        second_reference=_is_second_reference(attempt, request_id),
        contradicted=attempt.success_reported or attempt.positive_evidence,
        found_absent=attempt.absent_by_lookup,
        no_new_send=case.operation.cancelled_at is not None or attempt.closed_to_sending_at is not None,
        other_content=_is_other_content(attempt, report),
    )
    return judge(facts, heard)


def _is_other_content(attempt: Attempt, report: OutcomeReport) -> bool:
    return report.args_hash not in ("", attempt.args_hash)


def _is_second_reference(attempt: Attempt, request_id: str) -> bool:
    """Only a provider request id can be a second one; a result reference may well name the same request."""
    known = {attempt.provider_request_id, attempt.result_ref}
    return bool(attempt.provider_request_id and request_id and request_id not in known)


def _keep_evidence(case: Case, attempt: Attempt, report: OutcomeReport, *, trusted: bool) -> None:
    """What was said is in the history already; this is what later answers must not contradict unseen."""
    if report.outcome == Reported.SUCCEEDED:
        void_all_approvals(case, "success reported")
        if trusted and attempt.state not in FINAL:
            case.change(attempt, success_reported=True)
    if report.provider_request_id:
        void_all_approvals(case, "provider request id reported")
        _keep_reference(case, attempt, report.provider_request_id, trusted=trusted)


def _keep_reference(case: Case, attempt: Attempt, provider_request_id: str, *, trusted: bool) -> None:
    if trusted and not attempt.provider_request_id:
        case.change(attempt, provider_request_id=provider_request_id, positive_evidence=True)


def _apply(case: Case, attempt: Attempt, follows: Settles, report: OutcomeReport) -> None:
    if follows.reason is ReviewReason.SENT_WITHOUT_LEAVE:
        void_all_approvals(case, "sent without leave")
        to_review(case, attempt, follows.reason, maybe_sent=True, lease_ended_at=case.now)
    elif follows.reason is ReviewReason.HASH_MISMATCH:
        to_review(case, attempt, follows.reason)
    elif follows.reason is not None:
        open_conflict(case, attempt, evidence=report.as_data)
    elif follows.to is not None:
        _move(case, attempt, follows.to, report)
    elif follows.look_up_now or (attempt.state == State.UNKNOWN and report.outcome == Reported.SUCCEEDED):
        made_due(case, attempt)


def _move(case: Case, attempt: Attempt, to: State, report: OutcomeReport) -> None:
    said = report.as_data
    if to is State.OUTCOME_CONFIRMED:
        reference = report.result_ref or report.provider_request_id
        confirm(case, attempt, by=ConfirmedBy.AGENT, reference=reference)
    elif to is State.FAILED:
        fail(case, attempt, by=FailedBy.AGENT, failure=_failure(case, report), said=said)
    elif to is State.SUPERSEDED:
        supersede(case, attempt, how="same_effect", said=said)
    elif to is State.FAILED_RETRYABLE:
        move(case, attempt, to, absent_by_lookup=False, failure=report.error_class, said=said)
    else:
        move(case, attempt, to, reason=ReviewReason.UNKNOWN if to is State.UNKNOWN else None, said=said)


def _failure(case: Case, report: OutcomeReport) -> str:
    cancelled = case.operation.cancelled_at is not None
    return "cancelled" if cancelled and report.retryable else report.error_class


def _settled_nothing(follows: Settles) -> bool:
    return follows.to is None and not follows.look_up_now


def _holds_lease(case: Case, attempt: Attempt, key: ApiKey, worker_id: str, lease_epoch: int) -> bool:
    return (
        attempt.state == State.DISPATCHED
        and attempt.agent_id == key.agent_id
        and (attempt.worker_id, attempt.lease_epoch) == (worker_id, lease_epoch)
        and attempt.lease_until is not None
        and case.now < attempt.lease_until
        and key.revoked_at is None
    )


def _as_far_as_believed(
    attempt: Attempt, key: ApiKey | None, report: OutcomeReport, *, may_be_about_another: bool
) -> Report:
    """That nothing happened only its sender can know: of what the ledger sends, no agent proves it. And what
    had other content, or may be about another send, proves nothing about this."""
    sent_by_ledger = key is not None and attempt.was_sent and rule_of(attempt).executor == "ledger"
    if sent_by_ledger or may_be_about_another or _is_other_content(attempt, report):
        return replace(report.as_rule, no_effect=False)
    return report.as_rule


def _is_revoked(key: ApiKey | None) -> bool:
    """Is it the word of a revoked key? What the ledger did itself it says without one."""
    return key is not None and key.revoked_at is not None


def by_revoked(key: ApiKey | None) -> dict[str, str]:
    """What a revoked key says settles nothing: the same words of a live key are another report."""
    return {"by_revoked_key": key.key_id} if key is not None and key.revoked_at is not None else {}


def _was_told(attempt: Attempt, kind: EventKind, said: dict[str, Any]) -> bool:
    """The same words about the same attempt again are the same report, wherever they waited."""
    return any(_without_wait(event.data) == said for event in attempt.events.filter(kind=kind))


def _waited(parked: Mapping[str, Any] | None) -> dict[str, Any]:
    return {} if parked is None else {_PARKED: dict(parked)}


def _without_wait(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != _PARKED}
