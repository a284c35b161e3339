"""What is known of an operation's earlier attempts, so that their records are told from a later one's."""

from __future__ import annotations

from collections.abc import Collection

from ledger.lifecycle.case import Case
from ledger.models import Attempt, LookUp
from ledger.rules.reconcile import Earlier, LookedUpKind
from ledger.rules.reports import ErrorClass
from ledger.rules.states import State


def told_apart(case: Case, attempt: Attempt) -> tuple[frozenset[str], tuple[Earlier, ...]]:
    """The references that name this attempt alone, and the attempts before it, oldest first. What names this
    one too tells neither from the other, and a record that was known before is no later one's."""
    before = [other for other in case.attempts if other.number < attempt.number]
    failed = _found_failed(before, attempt) if before else {}
    own, known, found = _references(attempt), frozenset[str](), []
    for other in before:
        named, its_own = _references(other), failed.get(other.pk, frozenset()) - known
        known |= named | its_own
        found.append(_as_earlier(other, named - own, its_own - named - own))
    return own - known, tuple(found)


def _references(attempt: Attempt) -> frozenset[str]:
    return frozenset({attempt.result_ref, attempt.provider_request_id} - {""})


def _as_earlier(attempt: Attempt, named: frozenset[str], failed: frozenset[str]) -> Earlier:
    never_there = attempt.absent_by_lookup or attempt.failure == ErrorClass.NOT_CONNECTED
    return Earlier(
        references=named,
        failed=failed,
        confirmed=attempt.state == State.OUTCOME_CONFIRMED,
        left_nothing=never_there or not attempt.was_sent,
    )


def _found_failed(before: Collection[Attempt], attempt: Attempt) -> dict[str, frozenset[str]]:
    """The references of records that failed there, by whose look-up found them before this one was sent: no
    later one can tell whose they are."""
    sent_at = attempt.created_at if attempt.maybe_sent else attempt.dispatched_at or attempt.created_at
    found: dict[str, frozenset[str]] = {}
    look_ups = LookUp.objects.filter(attempt__in=before, answer=LookedUpKind.FOUND, answered_at__lte=sent_at)
    for attempt_id, records in look_ups.values_list("attempt_id", "records"):
        failed = {one["reference"] for one in records if one["state"] == "failed" and one["reference"]}
        found[attempt_id] = found.get(attempt_id, frozenset()) | failed
    return found
