"""The recovery table against a model written as plain questions, and the promises no row may break."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.rules.authority import Allowed, Reason, Refused
from ledger.rules.looked_up import Earlier, LookedUp, LookedUpKind, Record
from ledger.rules.reconcile import EVIDENCE, AttemptFacts, decide
from ledger.rules.states import State, check_move
from ledger.rules.vocabulary import Effect

NOW = datetime(2026, 8, 11, 10, tzinfo=UTC)
ASKED = NOW - timedelta(seconds=7)

spans = st.integers(-4_000, 4_000).map(lambda tenths: timedelta(seconds=tenths / 10))
times = spans.map(lambda span: NOW + span)
past = spans.map(lambda span: NOW - abs(span))
records = st.builds(
    Record,
    reference=st.none() | st.sampled_from(["r-0", "r-1", "r-2"]),
    content=st.sampled_from(["same", "same", "other"]),
    state=st.sampled_from(["done", "in_progress", "failed", "reversed"]),
)
answers = (
    st.builds(
        LookedUp,
        kind=st.sampled_from(
            [kind for kind in LookedUpKind if kind is not LookedUpKind.FOUND] + [LookedUpKind.ABSENT] * 4
        ),
        canary_seen=st.sampled_from([None, None, True, False]),
    )
    | st.builds(LookedUp, kind=st.just(LookedUpKind.UNAVAILABLE), endless=st.just(value=True))
    | st.builds(
        LookedUp,
        kind=st.just(LookedUpKind.FOUND),
        records=st.lists(records, min_size=1, max_size=3).map(tuple),
        canary_seen=st.sampled_from([None, True, False]),
    )
)
earlier = st.builds(
    Earlier,
    references=st.frozensets(st.sampled_from(["r-0", "r-1"])),
    failed=st.frozensets(st.sampled_from(["r-1", "r-2"])),
    confirmed=st.sampled_from([False, False, True]),
    left_nothing=st.booleans(),
)
rarely = st.sampled_from([False, False, False, True])
attempts = st.builds(
    AttemptFacts,
    effect=st.sampled_from([*Effect, *[Effect.PAYMENT] * 6]),
    idempotent=st.sampled_from([True, True, False]),
    state=st.sampled_from([*State, *[State.UNKNOWN] * 9]),
    send_lease_ended_at=times,
    settle_s=st.sampled_from([0.05, 1.0, 30.0]),
    checks=st.integers(0, 6),
    max_checks=st.sampled_from([1, 5, 20]),
    negatives=st.integers(0, 3),
    last_negative_at=st.none() | past,
    adapter_failures=st.integers(0, 4),
    has_positive_evidence=rarely,
    success_reported=rarely,
    confirm_by_lookup=rarely,
    cancelled=rarely,
    rejected=rarely,
    max_attempts_used=rarely,
    key_window_ends_at=st.none() | times,
    references=st.frozensets(st.sampled_from(["r-2"])),
    earlier=st.lists(earlier, max_size=2).map(tuple),
)
authorities = st.just(Allowed()) | st.lists(st.sampled_from(Reason), min_size=1, max_size=2, unique=True).map(
    lambda reasons: Refused(tuple(sorted(reasons, key=list(Reason).index)))
)


def nothing_happened(a: AttemptFacts, looked_up: LookedUp) -> bool:
    """Is all that is there known to have failed, or confirmed?"""
    confirmed = {reference for one in a.earlier if one.confirmed for reference in one.references}
    return all(
        r.reference in confirmed or (r.state == "failed" and is_of_earlier(a, r)) for r in looked_up.records
    )


def is_of_earlier(a: AttemptFacts, r: Record) -> bool:
    """Does an earlier attempt have its name, or failed it there when that was sent?"""
    named = {reference for one in a.earlier for reference in one.references}
    failed = {reference for one in a.earlier for reference in one.failed}
    return r.reference in (named | failed if r.state == "failed" else named)


def model_row(a: AttemptFacts, looked_up: LookedUp, authority: Allowed | Refused) -> str:  # noqa: C901
    """The same table asked as a person would: what is there? if nothing, may that be believed, and then?"""
    kind = str(looked_up.kind)
    theirs = {
        (r.reference or object(), r.content, r.state) for r in looked_up.records if not is_of_earlier(a, r)
    }
    only_exists = a.state in ("MANUAL_REVIEW", "FAILED_RETRYABLE")
    if not only_exists and a.state != "UNKNOWN":
        return "evidence"

    def if_unknown(row: str) -> str:
        return "evidence" if only_exists else row

    if a.effect == "read" and not only_exists:
        return "read"
    if len(theirs) > 1:
        return "several_matches"
    if theirs:
        ((_, content, there),) = theirs
        if content == "other":
            return "hash_mismatch"
        if there == "in_progress":
            return if_unknown("unresolved" if a.checks >= a.max_checks - 1 else "in_progress")
        return {"done": "confirmed", "failed": "failed_there", "reversed": "reversed"}[there]
    if only_exists:
        return "evidence"
    if kind == "no_lookup":
        return "no_lookup"
    if kind == "adapter_failed" and a.adapter_failures >= 2:
        return "adapter_failing"
    if looked_up.endless and a.checks >= a.max_checks - 1:
        return "unresolved"
    if kind in ("adapter_failed", "unavailable") or looked_up.canary_seen is False:
        return "unavailable"
    waited_s = (ASKED - a.send_lease_ended_at).total_seconds()
    spaced = a.last_negative_at is None or (ASKED - a.last_negative_at).total_seconds() >= min(5, a.settle_s)
    if waited_s < a.settle_s or a.negatives + spaced < 2:
        return "unresolved" if a.checks >= a.max_checks - 1 else "absent_too_early"
    if (
        a.has_positive_evidence
        or a.success_reported
        or a.confirm_by_lookup
        or not nothing_happened(a, looked_up)
    ):
        return "conflicting_evidence"
    if a.cancelled or a.rejected:
        return "closed"
    if not a.idempotent:
        return "not_idempotent"
    if a.key_window_ends_at is None or a.key_window_ends_at <= NOW:
        return "key_window_over"
    against = set(authority.reasons) if isinstance(authority, Refused) else set()
    if against - {"attempts-used-up"}:
        return "authority_refused"
    return "attempts_used_up" if against or a.max_attempts_used else "absent"


@settings(max_examples=1_500)
@given(attempts, answers, authorities)
def test_the_first_row_that_holds_is_the_model_s(
    attempt: AttemptFacts, looked_up: LookedUp, authority: Allowed | Refused
) -> None:
    assert decide(attempt, looked_up, authority, NOW, asked_at=ASKED).row == model_row(
        attempt, looked_up, authority
    )


@settings(max_examples=1_000)
@given(attempts, answers, authorities)
def test_nothing_is_sent_again_unless_it_is_a_read_or_every_condition_holds(
    attempt: AttemptFacts, looked_up: LookedUp, authority: Allowed | Refused
) -> None:
    if decide(attempt, looked_up, authority, NOW, asked_at=ASKED).to is not State.FAILED_RETRYABLE:
        return
    assert attempt.state is State.UNKNOWN
    assert not attempt.cancelled
    assert not attempt.rejected
    if attempt.effect is Effect.READ:
        return
    assert nothing_happened(attempt, looked_up)
    assert looked_up.kind in (LookedUpKind.ABSENT, LookedUpKind.FOUND)
    assert looked_up.canary_seen is not False
    assert attempt.idempotent
    assert attempt.key_window_ends_at is not None
    assert attempt.key_window_ends_at > NOW
    assert ASKED - attempt.send_lease_ended_at >= timedelta(seconds=attempt.settle_s)
    assert attempt.negatives >= 1
    assert not any((attempt.has_positive_evidence, attempt.success_reported, attempt.confirm_by_lookup))
    assert not attempt.max_attempts_used
    assert authority == Allowed()


@settings(max_examples=1_000)
@given(attempts, answers, authorities)
def test_what_follows_is_a_legal_move_and_says_why(
    attempt: AttemptFacts, looked_up: LookedUp, authority: Allowed | Refused
) -> None:
    follows = decide(attempt, looked_up, authority, NOW, asked_at=ASKED)
    if follows.to is not None:
        check_move(attempt.state, follows.to, sent=True, maybe_sent=False, conflict_open=False)
        assert follows.check_again_in is None
    assert (follows.to is State.FAILED) == (follows.cause is not None)
    assert follows.evidence_only == (follows.row == EVIDENCE.name)
    if follows.to is State.MANUAL_REVIEW:
        assert follows.reason is not None
    if attempt.state is State.UNKNOWN and follows.to is None:
        assert follows.check_again_in is not None


@given(attempts, answers, authorities)
def test_authority_never_hides_a_fact(
    attempt: AttemptFacts, looked_up: LookedUp, authority: Allowed | Refused
) -> None:
    """Whatever is refused, what exists is learned just the same."""
    follows = decide(attempt, looked_up, authority, NOW, asked_at=ASKED)
    if follows.row not in ("authority_refused", "attempts_used_up", "absent"):
        assert follows == decide(attempt, looked_up, Allowed(), NOW, asked_at=ASKED)


@given(attempts, answers, authorities)
def test_no_attempt_ends_by_what_another_may_have_left(
    attempt: AttemptFacts, looked_up: LookedUp, authority: Allowed | Refused
) -> None:
    follows = decide(attempt, looked_up, authority, NOW, asked_at=ASKED)
    if follows.cause != "failed_there" or follows.record is None:
        return
    shown = {record.reference for record in looked_up.records}
    for one in attempt.earlier:
        if follows.record.reference not in attempt.references:
            assert one.left_nothing or one.confirmed or one.failed or one.references & shown
