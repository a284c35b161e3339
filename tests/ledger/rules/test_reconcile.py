"""The recovery table by example: every row, in its order, with what it says."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ledger.rules.authority import Allowed, Reason, Refused
from ledger.rules.looked_up import Earlier, LookedUp, LookedUpKind, Record
from ledger.rules.reconcile import ROWS, AttemptFacts, Follows, counted_records, decide
from ledger.rules.states import State
from ledger.rules.vocabulary import Effect, ReviewReason

NOW = datetime(2026, 8, 11, 10, tzinfo=UTC)

# Long settled, one negative long ago, nothing against a resend: an absent here is FAILED_RETRYABLE.
SETTLED = AttemptFacts(
    effect=Effect.PAYMENT,
    idempotent=True,
    state=State.UNKNOWN,
    send_lease_ended_at=NOW - timedelta(seconds=30),
    settle_s=30.0,
    checks=0,
    max_checks=20,
    negatives=1,
    last_negative_at=NOW - timedelta(seconds=5),
    adapter_failures=0,
    has_positive_evidence=False,
    success_reported=False,
    confirm_by_lookup=False,
    cancelled=False,
    rejected=False,
    max_attempts_used=False,
    key_window_ends_at=NOW + timedelta(hours=1),
)
ABSENT = LookedUp(LookedUpKind.ABSENT)
UNAVAILABLE = LookedUp(LookedUpKind.UNAVAILABLE)
ENDLESS = LookedUp(LookedUpKind.UNAVAILABLE, endless=True)
FAILING = LookedUp(LookedUpKind.ADAPTER_FAILED)
BLIND = LookedUp(LookedUpKind.ABSENT, canary_seen=False)
SEEING = LookedUp(LookedUpKind.ABSENT, canary_seen=True)

DONE = Record("r-1", "same", "done")
RUNNING = Record("r-1", "same", "in_progress")
BROKEN = Record("r-1", "same", "failed")
UNDONE = Record("r-1", "same", "reversed")
OTHER = Record("r-1", "other", "done")

EARLIER = Record("r-0", "same", "failed")
EARLIER_DONE = Record("r-0", "same", "done")
FIRST = Earlier(frozenset({"r-0"}))
KNOWN: dict[str, Any] = {"earlier": (FIRST,)}
UNTOLD: dict[str, Any] = {"earlier": (FIRST, Earlier())}
CONFIRMED: dict[str, Any] = {"earlier": (FIRST, replace(FIRST, confirmed=True))}


def found(*records: Record, canary_seen: bool | None = None) -> LookedUp:
    return LookedUp(LookedUpKind.FOUND, records, canary_seen)


def refused(*reasons: Reason) -> Refused:
    return Refused(reasons)


def ask(
    looked_up: LookedUp,
    authority: Allowed | Refused | None = None,
    *,
    asked_at: datetime = NOW,
    now: datetime = NOW,
    **facts: Any,
) -> Follows:
    attempt = replace(SETTLED, **facts)
    return decide(attempt, looked_up, authority or Allowed(), now, asked_at=asked_at)


S, R = State, ReviewReason

# What each row of the table says, in its order: the state after (None: stays) and the reason for a person.
SAYS: dict[str, tuple[State | None, ReviewReason | None]] = {
    "read": (S.FAILED_RETRYABLE, None),
    "no_lookup": (S.MANUAL_REVIEW, R.NO_LOOKUP),
    "adapter_failing": (S.MANUAL_REVIEW, R.ADAPTER_FAILING),
    "unresolved": (S.MANUAL_REVIEW, R.UNRESOLVED),
    "unavailable": (None, None),
    "several_matches": (S.MANUAL_REVIEW, R.SEVERAL_MATCHES),
    "hash_mismatch": (S.MANUAL_REVIEW, R.HASH_MISMATCH),
    "reversed": (S.MANUAL_REVIEW, R.REVERSED),
    "failed_there": (S.FAILED, None),
    "in_progress": (None, None),
    "confirmed": (S.OUTCOME_CONFIRMED, None),
    "absent_too_early": (None, None),
    "conflicting_evidence": (S.MANUAL_REVIEW, R.CONFLICTING_EVIDENCE),
    "closed": (S.FAILED, None),
    "not_idempotent": (S.MANUAL_REVIEW, R.NOT_IDEMPOTENT),
    "key_window_over": (S.MANUAL_REVIEW, R.KEY_WINDOW_OVER),
    "authority_refused": (S.MANUAL_REVIEW, R.AUTHORITY_REFUSED),
    "attempts_used_up": (S.MANUAL_REVIEW, R.ATTEMPTS_USED_UP),
    "approval_required": (S.MANUAL_REVIEW, R.APPROVAL_REQUIRED),
    "suspected_duplicate": (S.MANUAL_REVIEW, R.SUSPECTED_DUPLICATE),
    "absent": (S.FAILED_RETRYABLE, None),
}
FALLBACK = refused(Reason.KEY_REVOKED, Reason.ATTEMPTS_USED_UP)
ALL_USED = refused(Reason.ATTEMPTS_USED_UP)

# Row, answer, facts that differ from SETTLED, authority's refusal.
EXAMPLES: list[tuple[str, LookedUp, dict[str, Any], Refused | None]] = [
    ("read", UNAVAILABLE, {"effect": Effect.READ}, FALLBACK),
    ("no_lookup", LookedUp(LookedUpKind.NO_LOOKUP), {"cancelled": True}, None),
    ("adapter_failing", FAILING, {"adapter_failures": 2}, None),
    ("unresolved", found(RUNNING), {"checks": 19}, None),
    ("unresolved", ABSENT, {"checks": 19, "negatives": 0}, None),
    ("unresolved", ENDLESS, {"checks": 19}, None),
    ("unavailable", ENDLESS, {"checks": 18}, None),
    ("unavailable", FAILING, {"adapter_failures": 1, "checks": 99}, None),
    ("unavailable", UNAVAILABLE, {"checks": 99}, None),
    ("unavailable", BLIND, {"checks": 99, "cancelled": True}, None),
    ("unavailable", replace(BLIND, kind=LookedUpKind.FOUND, records=(EARLIER,)), KNOWN, None),
    ("several_matches", found(DONE, replace(DONE, reference="r-2")), {}, None),
    ("several_matches", found(DONE, BROKEN), {}, None),
    ("several_matches", found(*[replace(DONE, reference=None)] * 2), {}, None),
    ("several_matches", found(RUNNING, OTHER), {"checks": 99}, None),
    ("hash_mismatch", found(OTHER), {}, None),
    ("hash_mismatch", found(replace(OTHER, state="reversed")), {}, None),
    ("hash_mismatch", found(replace(OTHER, state="in_progress")), {"checks": 99}, None),
    ("reversed", found(UNDONE), {}, None),
    ("failed_there", found(BROKEN), {"cancelled": True}, None),
    ("in_progress", found(RUNNING), {"checks": 18}, None),
    ("confirmed", found(DONE), {"cancelled": True, "idempotent": False}, FALLBACK),
    ("confirmed", found(DONE, DONE), {}, None),
    ("confirmed", found(DONE, canary_seen=False), {}, None),
    ("confirmed", found(DONE, EARLIER), KNOWN, None),
    ("absent_too_early", ABSENT, {"send_lease_ended_at": NOW - timedelta(seconds=29)}, None),
    ("absent_too_early", ABSENT, {"negatives": 0, "last_negative_at": None}, None),
    ("absent_too_early", ABSENT, {"last_negative_at": NOW - timedelta(seconds=4)}, None),
    ("conflicting_evidence", ABSENT, {"has_positive_evidence": True, "cancelled": True}, None),
    ("conflicting_evidence", ABSENT, {"success_reported": True}, None),
    ("conflicting_evidence", ABSENT, {"confirm_by_lookup": True}, None),
    ("conflicting_evidence", found(EARLIER_DONE), {**KNOWN, "cancelled": True}, None),
    ("conflicting_evidence", found(replace(EARLIER_DONE, state="in_progress")), KNOWN, None),
    ("conflicting_evidence", found(replace(EARLIER_DONE, state="reversed")), KNOWN, None),
    ("closed", ABSENT, {"cancelled": True, "rejected": True, "idempotent": False}, None),
    ("closed", ABSENT, {"rejected": True}, FALLBACK),
    ("not_idempotent", ABSENT, {"idempotent": False, "key_window_ends_at": NOW}, None),
    ("key_window_over", ABSENT, {"key_window_ends_at": NOW}, FALLBACK),
    ("key_window_over", ABSENT, {"key_window_ends_at": None}, None),
    ("authority_refused", ABSENT, {"max_attempts_used": True}, refused(Reason.KEY_REVOKED)),
    ("authority_refused", ABSENT, {}, FALLBACK),
    ("attempts_used_up", ABSENT, {"max_attempts_used": True}, None),
    ("attempts_used_up", ABSENT, {}, ALL_USED),
    ("approval_required", ABSENT, {"ever_held": True}, None),
    ("approval_required", ABSENT, {"ever_held": True, "twin_sent": True}, None),
    ("suspected_duplicate", ABSENT, {"twin_sent": True}, None),
    ("attempts_used_up", ABSENT, {"ever_held": True, "max_attempts_used": True}, None),
    ("closed", ABSENT, {"ever_held": True, "cancelled": True}, None),
    ("absent", SEEING, {}, None),
    ("absent", ABSENT, {"checks": 99}, None),
    ("absent", found(EARLIER), KNOWN, None),
    ("absent", found(EARLIER_DONE), CONFIRMED, None),
]


@pytest.mark.parametrize(("row", "looked_up", "facts", "authority"), EXAMPLES)
def test_each_row(row: str, looked_up: LookedUp, facts: dict[str, Any], authority: Refused | None) -> None:
    follows = ask(looked_up, authority, **facts)
    assert follows.row == row
    assert (follows.to, follows.reason) == SAYS[row]
    assert not follows.evidence_only


def test_a_cancelled_read_is_closed_and_not_repeated() -> None:
    follows = ask(UNAVAILABLE, effect=Effect.READ, cancelled=True)
    assert (follows.row, follows.to, follows.cause) == ("read", S.FAILED, "cancelled")


def test_the_rows_stand_in_the_order_of_the_table() -> None:
    assert [row.name for row in ROWS] == list(SAYS) == list(dict.fromkeys(row for row, *_ in EXAMPLES))


def test_why_an_attempt_failed_is_said() -> None:
    assert ask(ABSENT, cancelled=True, rejected=True).cause == "cancelled"
    assert ask(ABSENT, rejected=True).cause == "rejected"
    assert ask(found(BROKEN)).cause == "failed_there"
    assert ask(ABSENT).cause is None


def test_the_record_that_decided_comes_along() -> None:
    assert ask(found(EARLIER_DONE, OTHER), **KNOWN).record == OTHER
    assert ask(found(DONE, OTHER)).record is None
    assert ask(found(DONE, OTHER)).duplicate_counted


@pytest.mark.parametrize("state", State)
def test_a_finding_is_said_in_every_state_and_under_every_row(state: State) -> None:
    for looked_up in (found(DONE), found(RUNNING), found(DONE, OTHER), found(EARLIER, BROKEN)):
        assert ask(looked_up, state=state, checks=99, **KNOWN).found
    for looked_up in (found(EARLIER), ABSENT, UNAVAILABLE, FAILING):
        assert not ask(looked_up, state=state, **KNOWN).found


def test_a_record_of_an_earlier_attempt_is_no_finding() -> None:
    assert counted_records(found(EARLIER_DONE, DONE, DONE), (FIRST,)) == (DONE,)
    assert counted_records(found(EARLIER), (FIRST,)) == ()


@pytest.mark.parametrize("state", [S.UNKNOWN, S.MANUAL_REVIEW])
def test_absent_is_believed_where_it_is_seen_that_nothing_happened(state: State) -> None:
    for nothing in (ABSENT, SEEING, found(EARLIER), replace(found(EARLIER), canary_seen=True)):
        assert ask(nothing, state=state, **KNOWN).believed_absent
    assert ask(found(EARLIER_DONE), state=state, **CONFIRMED).believed_absent
    blind = replace(found(EARLIER), canary_seen=False)
    for other in (
        BLIND,
        blind,
        UNAVAILABLE,
        FAILING,
        found(DONE),
        found(EARLIER, BROKEN),
        found(EARLIER_DONE),
    ):
        assert not ask(other, state=state, **KNOWN).believed_absent


def test_only_a_spaced_negative_counts() -> None:
    spacing = timedelta(seconds=5)
    assert ask(ABSENT, last_negative_at=NOW - spacing).negative_counted
    assert not ask(ABSENT, last_negative_at=NOW - spacing + timedelta(microseconds=1)).negative_counted
    assert ask(ABSENT, last_negative_at=NOW - timedelta(seconds=0.05), settle_s=0.05).negative_counted
    assert ask(ABSENT, negatives=0, last_negative_at=None).negative_counted
    for other in (BLIND, UNAVAILABLE, FAILING, found(DONE), found(RUNNING)):
        assert not ask(other).negative_counted


def test_an_absent_is_as_old_as_its_question() -> None:
    """A reconciler may stop before it applies what it heard inside the settle window, or too soon."""
    later, moment = NOW + timedelta(minutes=3), timedelta(microseconds=1)
    assert ask(ABSENT, now=later).row == "absent"
    assert ask(ABSENT, now=later, send_lease_ended_at=NOW - timedelta(seconds=30) + moment).row == (
        "absent_too_early"
    )
    last_at = SETTLED.last_negative_at
    assert last_at is not None
    assert not ask(ABSENT, now=later, last_negative_at=last_at + moment).negative_counted
    assert ask(ABSENT, now=later, key_window_ends_at=later).row == "key_window_over"


def test_only_undecided_answers_of_a_reachable_provider_count_as_checks() -> None:
    assert ask(found(RUNNING)).check_counted
    assert ask(ABSENT, negatives=0).check_counted
    assert ask(ABSENT, negatives=0, checks=19).check_counted
    for other in (BLIND, UNAVAILABLE, FAILING, found(DONE), ABSENT):
        assert not ask(other).check_counted


def test_when_to_ask_again() -> None:
    assert ask(ABSENT, negatives=0).check_again_in == "soon"
    assert ask(ABSENT, send_lease_ended_at=NOW).check_again_in == "backoff"
    assert ask(found(RUNNING)).check_again_in == "backoff"
    assert ask(UNAVAILABLE).check_again_in == "backoff"
    assert ask(ABSENT).check_again_in is None
    assert ask(found(DONE)).check_again_in is None


def test_age_calls_nobody_while_the_provider_is_away() -> None:
    assert ask(found(RUNNING)).may_escalate
    assert ask(ABSENT, negatives=0).may_escalate
    for away in (UNAVAILABLE, BLIND, FAILING):
        assert not ask(away).may_escalate


@pytest.mark.parametrize("records", [(), (DONE,)])
@pytest.mark.parametrize("kind", LookedUpKind)
def test_an_answer_that_contradicts_itself_cannot_be_made(
    kind: LookedUpKind, records: tuple[Record, ...]
) -> None:
    if bool(records) == (kind is LookedUpKind.FOUND):
        assert LookedUp(kind, records).records == records
    else:
        with pytest.raises(ValueError, match="records"):
            LookedUp(kind, records)


@pytest.mark.parametrize(
    "told",
    [
        {"earlier": (Earlier(left_nothing=True), Earlier(confirmed=True))},
        {"earlier": (Earlier(failed=frozenset({"r-7"})),)},
        {**UNTOLD, "references": frozenset({"r-1"})},
    ],
)
def test_a_record_that_failed_there_ends_the_attempt_it_is_of(told: dict[str, Any]) -> None:
    assert ask(found(BROKEN), **told).to is S.FAILED
    assert ask(found(BROKEN, EARLIER), **KNOWN).to is S.FAILED


@pytest.mark.parametrize("looked_up", [found(BROKEN), found(EARLIER, BROKEN)])
def test_one_that_an_earlier_attempt_may_have_left_is_for_a_person(looked_up: LookedUp) -> None:
    for state in (S.UNKNOWN, S.FAILED_RETRYABLE):
        follows = ask(looked_up, state=state, **UNTOLD)
        assert (follows.row, follows.to, follows.reason) == ("failed_there", S.MANUAL_REVIEW, R.UNRESOLVED)
    at_the_desk = ask(looked_up, state=S.MANUAL_REVIEW, **UNTOLD)
    assert (at_the_desk.to, at_the_desk.reason, at_the_desk.found) == (None, None, True)


def test_a_name_that_no_record_has_tells_none_apart() -> None:
    assert ask(found(BROKEN), **KNOWN).reason is R.UNRESOLVED


def test_what_failed_for_an_earlier_attempt_is_counted_again_when_it_says_something_else() -> None:
    tied: dict[str, Any] = {"earlier": (Earlier(failed=frozenset({"r-1"})),)}
    assert ask(found(BROKEN), **tied).row == "absent"
    assert ask(found(DONE), **tied).to is S.OUTCOME_CONFIRMED
    assert ask(found(BROKEN, replace(DONE, reference="r-2")), **tied).to is S.OUTCOME_CONFIRMED


# In MANUAL_REVIEW only the rows that say something exists; a reason there is the item's new reason.
@pytest.mark.parametrize(
    ("looked_up", "row", "to", "reason"),
    [
        (found(DONE, OTHER), "several_matches", None, R.SEVERAL_MATCHES),
        (found(OTHER), "hash_mismatch", None, R.HASH_MISMATCH),
        (found(UNDONE), "reversed", None, R.REVERSED),
        (found(BROKEN), "failed_there", S.FAILED, None),
        (found(DONE), "confirmed", S.OUTCOME_CONFIRMED, None),
        (found(RUNNING), "evidence", None, None),
        (ABSENT, "evidence", None, None),
        (BLIND, "evidence", None, None),
        (UNAVAILABLE, "evidence", None, None),
        (FAILING, "evidence", None, None),
        (LookedUp(LookedUpKind.NO_LOOKUP), "evidence", None, None),
    ],
)
def test_in_manual_review(
    looked_up: LookedUp, row: str, to: State | None, reason: ReviewReason | None
) -> None:
    follows = ask(looked_up, state=S.MANUAL_REVIEW, adapter_failures=9, checks=99, cancelled=True)
    assert (follows.row, follows.to, follows.reason) == (row, to, reason)
    assert follows.evidence_only == (row == "evidence")
