"""What the history of one schedule itself shows to be wrong, beside what `fsck` asks of every history."""

from __future__ import annotations

from collections.abc import Iterator

from ledger.models import ApiKey, Attempt, Event, LookUp, Operation, Tenant
from ledger.policies import rule_of
from ledger.rules.authority import covers_tool
from ledger.rules.reports import Reported
from ledger.rules.states import FINAL, State
from ledger.rules.vocabulary import RECEIPT_IS_ONLY_EVIDENCE, EventKind

SETTLED = frozenset({State.OUTCOME_CONFIRMED, State.SUPERSEDED, State.MANUAL_REVIEW})
"""What a receipt leads to: it happened, it is the same effect, or it contradicts what is known."""


def what_is_wrong(tenant: Tenant, *, quiet_at: float) -> Iterator[str]:
    """Each in words. `quiet_at`: since when (seconds) everybody can see what was withdrawn before."""
    for operation in Operation.objects.filter(tenant=tenant):
        yield from _times_gone_back(operation)
    is_off = tenant.suspended_at is not None or not _has_key(tenant)
    for attempt in Attempt.objects.filter(tenant=tenant).select_related("policy", "operation"):
        yield from _answers_of_zombies(attempt)
        yield from _ignored_receipts(attempt)
        yield from _sent_without_authority(attempt, quiet_at if is_off else None)


def _has_key(tenant: Tenant) -> bool:
    """Does the agent still have a key that works?"""
    return ApiKey.objects.filter(tenant=tenant, agent__name="bot", revoked_at=None).exists()


def _sent_without_authority(attempt: Attempt, off_since: float | None) -> Iterator[str]:
    """Leave beyond the scopes of its key, of an operation that was cancelled, of a tenant or by an agent that
    was switched off."""
    sent_at, cancelled_at = attempt.dispatched_at, attempt.operation.cancelled_at
    if sent_at is None:
        return
    if not covers_tool(attempt.scopes, attempt.tool):
        yield f"{attempt} was sent with scopes {attempt.scopes}, which do not cover {attempt.tool}"
    if cancelled_at is not None and sent_at > cancelled_at:
        yield f"{attempt} was sent {sent_at - cancelled_at} after its operation was cancelled"
    if off_since is not None and sent_at.timestamp() > off_since:
        yield f"{attempt} was sent although its tenant was suspended or its key revoked"


def _times_gone_back(operation: Operation) -> Iterator[str]:
    """The clock is read after the last lock, so that no event is older than the one before it."""
    before = None
    for event in operation.events.order_by("sequence"):
        if before is not None and event.at < before.at:
            yield f"{operation.operation_key} event {event.sequence} is {before.at - event.at} too early"
        before = event


def _answers_of_zombies(attempt: Attempt) -> Iterator[str]:
    """Each look-up lease gives one answer, and none after a later one."""
    newest = 0
    for answer in LookUp.objects.filter(attempt=attempt).exclude(row="stale").order_by("answered_at"):
        if answer.epoch <= newest:
            yield f"{attempt} took an answer of epoch {answer.epoch} ({answer.row}) after epoch {newest}"
        newest = max(newest, answer.epoch)


def _ignored_receipts(attempt: Attempt) -> Iterator[str]:
    """A receipt settles what is not settled, however late it comes."""
    if rule_of(attempt).confirm == "lookup":
        return
    state, reason = "", ""
    events = list(attempt.events.order_by("sequence"))
    for number, event in enumerate(events):
        open_still = state not in FINAL and reason not in RECEIPT_IS_ONLY_EVIDENCE
        if open_still and _is_receipt(event):
            at_once = [later for later in events[number + 1 :] if later.at == event.at]
            if not any(map(_settles, at_once)):
                yield f"{attempt} was {state} {reason} and a receipt settled nothing"
        if "to" in event.data:
            state, reason = event.data["to"], event.data.get("reason", "")


def _is_receipt(event: Event) -> bool:
    data = event.data
    is_report = event.kind == EventKind.OUTCOME_REPORTED and "by_revoked_key" not in data
    return is_report and data["outcome"] == Reported.SUCCEEDED and bool(data.get("result_ref"))


def _settles(event: Event) -> bool:
    return event.kind == EventKind.CONFLICT or event.data.get("to") in SETTLED
