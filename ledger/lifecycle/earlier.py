"""What is known of an operation's earlier attempts, so that their records are told from a later one's."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ledger.lifecycle.case import Case
from ledger.lifecycle.freshness import proves_absent
from ledger.models import Attempt, LookUp
from ledger.rules.looked_up import Earlier, LookedUpKind
from ledger.rules.reports import ErrorClass
from ledger.rules.states import State


def told_apart(case: Case, attempt: Attempt) -> tuple[frozenset[str], tuple[Earlier, ...]]:
    """The references that name this attempt alone, and the attempts before it, oldest first. What names this
    one too tells neither from the other, and a record that was known before is no later one's."""
    before = [other for other in case.attempts if other.number < attempt.number]
    answers = _answers_before(before, attempt) if before else {}
    own, known, found = _references(attempt), frozenset[str](), []
    for other in before:
        told = answers.get(other.pk, [])
        named, its_own = _references(other), _found_failed(told) - known
        known |= named | its_own
        absent = bool(told) and proves_absent(other, told[-1])
        found.append(_as_earlier(other, named - own, its_own - named - own, absent=absent))
    return own - known, tuple(found)


def _references(attempt: Attempt) -> frozenset[str]:
    return frozenset({attempt.result_ref, attempt.provider_request_id} - {""})


def _as_earlier(attempt: Attempt, named: frozenset[str], failed: frozenset[str], *, absent: bool) -> Earlier:
    """`absent`: its last look-up before the next send proved that nothing was there."""
    never_there = absent or attempt.absent_by_lookup or attempt.failure == ErrorClass.NOT_CONNECTED
    return Earlier(
        references=named,
        failed=failed,
        confirmed=attempt.state == State.OUTCOME_CONFIRMED,
        left_nothing=never_there or not attempt.was_sent,
    )


def _answers_before(before: Collection[Attempt], attempt: Attempt) -> dict[str, list[LookUp]]:
    """The answers about earlier attempts, oldest first, until this one was sent: no later one can tell whose
    records they are of."""
    sent_at = attempt.created_at if attempt.maybe_sent else attempt.dispatched_at or attempt.created_at
    answers: dict[str, list[LookUp]] = {}
    for answer in LookUp.objects.filter(attempt__in=before, answered_at__lte=sent_at).order_by("answered_at"):
        answers.setdefault(answer.attempt_id, []).append(answer)
    return answers


def _found_failed(answers: Iterable[LookUp]) -> frozenset[str]:
    """The references of records that failed there."""
    records = (one for answer in answers if answer.answer == LookedUpKind.FOUND for one in answer.records)
    return frozenset(one["reference"] for one in records if one["state"] == "failed" and one["reference"])
