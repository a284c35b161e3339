"""Recovery: what follows for an attempt nobody has heard from, once its provider was asked.

The table of the domain, as rows in its order: the first that holds decides. Nothing here turns time alone
into a failure or into leave to send.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from ledger.rules.authority import Allowed, Reason, Refused
from ledger.rules.backoff import negative_spacing_s
from ledger.rules.looked_up import Earlier, LookedUp, LookedUpKind, Record
from ledger.rules.states import State
from ledger.rules.vocabulary import Effect, ReviewReason

NEGATIVES_NEEDED = 2
ADAPTER_FAILURES_NEEDED = 3


@dataclass(frozen=True)
class AttemptFacts:
    """What the ledger knows of the attempt; counts and `last_negative_at` are from before this answer.

    `checks`: answers of a reachable provider that decided nothing. `negatives`: spaced answers *absent*.
    `adapter_failures`: in a row. `has_positive_evidence`: a receipt, an earlier finding, or a reference named
    by a person. `success_reported`: the agent said it succeeded. `confirm_by_lookup`: … under a rule that
    confirms by look-up only. `ever_held`: it, or what it descends from, was: every send of it needs an
    approval. `twin_sent`: so was a twin. `references`: those that name this attempt alone. `earlier`: the
    operation's attempts before it, oldest first.
    `send_lease_ended_at`: when it ended or will end (after an unfence: that time).
    """

    effect: Effect
    idempotent: bool
    state: State
    send_lease_ended_at: datetime
    settle_s: float
    checks: int
    max_checks: int
    negatives: int
    last_negative_at: datetime | None
    adapter_failures: int
    has_positive_evidence: bool
    success_reported: bool
    confirm_by_lookup: bool
    cancelled: bool
    rejected: bool
    max_attempts_used: bool
    key_window_ends_at: datetime | None
    ever_held: bool = False
    twin_sent: bool = False
    references: frozenset[str] = frozenset()
    earlier: tuple[Earlier, ...] = ()


@dataclass(frozen=True)
class Follows:
    """What follows. `to` None: the attempt stays; `reason` then is the new reason of its open item, if any.

    `cause` says why it is FAILED. `check_again_in` "soon": after negative_spacing_s, else by the back-off.
    `negative_counted` and `check_counted`: this answer adds one to `negatives` and sets `last_negative_at`,
    or adds one to `checks`. `found`: something exists that no earlier attempt is tied to; from now on that is
    positive evidence, whatever row decided. `believed_absent`: nothing is there that happened or may yet,
    but what is confirmed. `duplicate_counted`: two effects of one attempt were seen.
    `refused`: why authority would not let it be sent again, where that is what decided.
    `may_escalate`: age alone may call a person, because the provider was reachable. That its key window is
    about to close calls one whoever is away (`rules.key_window`).
    """

    row: str = ""
    to: State | None = None
    reason: ReviewReason | None = None
    evidence_only: bool = False
    record: Record | None = None
    check_again_in: Literal["backoff", "soon"] | None = None
    cause: Literal["cancelled", "rejected", "failed_there"] | None = None
    negative_counted: bool = False
    check_counted: bool = False
    found: bool = False
    believed_absent: bool = False
    duplicate_counted: bool = False
    may_escalate: bool = False
    refused: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class _Case:
    """One question, with what every row asks of it worked out once."""

    attempt: AttemptFacts
    looked_up: LookedUp
    authority: Allowed | Refused
    now: datetime
    asked_at: datetime

    @property
    def counted(self) -> tuple[Record, ...]:
        return counted_records(self.looked_up, self.attempt.earlier)

    @property
    def only(self) -> Record | None:
        return self.counted[0] if len(self.counted) == 1 else None

    @property
    def unreachable(self) -> bool:
        """No readable answer; an *absent* from a look-up that sees nothing at all is none either."""
        kinds = (LookedUpKind.UNAVAILABLE, LookedUpKind.ADAPTER_FAILED)
        return self.looked_up.kind in kinds or (self.looked_up.canary_seen is False and not self.counted)

    @property
    def absent(self) -> bool:
        """Nothing is there, or nothing but what belongs to earlier attempts."""
        readable = self.looked_up.kind in (LookedUpKind.ABSENT, LookedUpKind.FOUND)
        return readable and not self.unreachable and not self.counted

    @property
    def earlier_took_effect(self) -> bool:
        """Does a record say that an earlier attempt happened, or may yet, which is not confirmed? Its
        reference may also be that of every send, so that it may be this attempt's record as well."""
        confirmed = [one for one in self.attempt.earlier if one.confirmed]
        unconfirmed = [one for one in self.attempt.earlier if not one.confirmed]
        return any(
            record.state != "failed" and _tied(record, unconfirmed) and not _tied(record, confirmed)
            for record in self.looked_up.records
        )

    @property
    def settled(self) -> bool:
        return self.asked_at >= self.attempt.send_lease_ended_at + timedelta(seconds=self.attempt.settle_s)

    @property
    def negative_counts(self) -> bool:
        """Was this *absent* asked for long enough after the last counted one?"""
        last_at, spacing_s = self.attempt.last_negative_at, negative_spacing_s(self.attempt.settle_s)
        return self.absent and (last_at is None or (self.asked_at - last_at).total_seconds() >= spacing_s)

    @property
    def absent_too_early(self) -> bool:
        negatives = self.attempt.negatives + (1 if self.negative_counts else 0)
        return self.absent and not (self.settled and negatives >= NEGATIVES_NEEDED)

    def exists(self, state: str) -> bool:
        """Is there one record, with the same content, in this state at the provider?"""
        return self.only is not None and self.only.content == "same" and self.only.state == state

    @property
    def may_be_of_earlier(self) -> bool:
        """Can the one record that failed there not be told from what an earlier attempt may have left?"""
        if self.only is None or self.only.reference in self.attempt.references:
            return False
        shown = frozenset(record.reference for record in self.looked_up.records)
        return any(one.may_have_failed_unseen(shown) for one in self.attempt.earlier)

    @property
    def in_progress(self) -> bool:
        return self.exists("in_progress")

    @property
    def decides_nothing(self) -> bool:
        return self.absent_too_early or self.in_progress or self.looked_up.endless

    @property
    def key_window_over(self) -> bool:
        ends_at = self.attempt.key_window_ends_at
        return ends_at is None or self.now >= ends_at

    @property
    def refused(self) -> tuple[Reason, ...]:
        """Authority's reasons without the one that has a row of its own below."""
        reasons = self.authority.reasons if isinstance(self.authority, Refused) else ()
        return tuple(reason for reason in reasons if reason is not Reason.ATTEMPTS_USED_UP)

    @property
    def attempts_used_up(self) -> bool:
        told = isinstance(self.authority, Refused) and Reason.ATTEMPTS_USED_UP in self.authority.reasons
        return self.attempt.max_attempts_used or told


Predicate = Callable[[_Case], bool]
Follow = Callable[[_Case], Follows]


@dataclass(frozen=True)
class Row:
    """One row of the table. `exists`: it says something is there, so it applies in MANUAL_REVIEW too."""

    name: str
    holds: Predicate
    follow: Follow
    exists: bool = False


def decide(
    attempt: AttemptFacts,
    looked_up: LookedUp,
    authority: Allowed | Refused,
    now: datetime,
    *,
    asked_at: datetime,
) -> Follows:
    """What follows from this answer for this attempt: the first row that holds. `asked_at`: when the question
    was claimed. What nobody had sent or could see by then the answer knows nothing of, however late it comes.

    For an UNKNOWN attempt every row applies; in MANUAL_REVIEW and FAILED_RETRYABLE only those that say
    something exists. Everything else, and any answer about an attempt in another state, is evidence only.
    """
    case = _Case(attempt, looked_up, authority, now, asked_at)
    row = next((row for row in _rows_for(attempt.state) if row.holds(case)), EVIDENCE)
    follows = replace(
        row.follow(case),
        row=row.name,
        negative_counted=case.negative_counts,
        found=bool(case.counted),
        believed_absent=case.absent and not case.earlier_took_effect,
        may_escalate=not case.unreachable,
    )
    return replace(follows, to=None) if follows.to is attempt.state else follows


def counted_records(looked_up: LookedUp, earlier: tuple[Earlier, ...]) -> tuple[Record, ...]:
    """The records no earlier attempt of the operation is tied to; the same one listed twice is one.

    Any at all is a finding, in a stale answer too.
    """
    return _distinct(tuple(record for record in looked_up.records if not _tied(record, earlier)))


def _tied(record: Record, attempts: Iterable[Earlier]) -> bool:
    return any(one.owns(record) for one in attempts)


def _rows_for(state: State) -> tuple[Row, ...]:
    if state is State.UNKNOWN:
        return ROWS
    if state in (State.MANUAL_REVIEW, State.FAILED_RETRYABLE):
        return tuple(row for row in ROWS if row.exists)
    return ()


def _distinct(records: tuple[Record, ...]) -> tuple[Record, ...]:
    """A listing may repeat an object over two pages; without a reference nothing says two are one."""
    found: dict[object, Record] = {}
    for index, record in enumerate(records):
        same = index if record.reference is None else (record.reference, record.content, record.state)
        found.setdefault(same, record)
    return tuple(found.values())


def _exists(state: str) -> Predicate:
    return lambda case: case.exists(state)


def _other_content(case: _Case) -> bool:
    return case.only is not None and case.only.content == "other"


def _to_review(reason: ReviewReason) -> Follow:
    return lambda case: Follows(to=State.MANUAL_REVIEW, reason=reason, record=case.only)


def _closing_cause(case: _Case) -> Literal["cancelled", "rejected"] | None:
    """Why nothing of this operation is to be sent again, once it is known that nothing happened."""
    if case.attempt.cancelled:
        return "cancelled"
    return "rejected" if case.attempt.rejected else None


def _no_effect(case: _Case) -> Follows:
    cause = _closing_cause(case)
    return Follows(to=State.FAILED_RETRYABLE if cause is None else State.FAILED, cause=cause)


def _several(_: _Case) -> Follows:
    return Follows(to=State.MANUAL_REVIEW, reason=ReviewReason.SEVERAL_MATCHES, duplicate_counted=True)


def _failed_there(case: _Case) -> Follows:
    """It ends only the attempt whose record it is; whose, a person finds out."""
    if not case.may_be_of_earlier:
        return Follows(to=State.FAILED, record=case.only, cause="failed_there")
    is_asked = case.attempt.state is State.MANUAL_REVIEW
    return Follows(
        to=State.MANUAL_REVIEW, reason=None if is_asked else ReviewReason.UNRESOLVED, record=case.only
    )


def _stay(case: _Case) -> Follows:
    """Stay and ask again: soon where only a second, spaced *absent* is wanting."""
    soon = case.absent_too_early and case.settled
    return Follows(
        record=case.only, check_again_in="soon" if soon else "backoff", check_counted=case.decides_nothing
    )


def _unresolved(case: _Case) -> Follows:
    return replace(_to_review(ReviewReason.UNRESOLVED)(case), check_counted=True)


def _evidence(case: _Case) -> Follows:
    return Follows(evidence_only=True, record=case.only)


def _contradicted(case: _Case) -> bool:
    attempt = case.attempt
    in_hand = attempt.has_positive_evidence or attempt.success_reported or attempt.confirm_by_lookup
    return in_hand or case.earlier_took_effect


ROWS: tuple[Row, ...] = (
    Row("read", lambda case: case.attempt.effect is Effect.READ, _no_effect),
    Row(
        "no_lookup",
        lambda case: case.looked_up.kind is LookedUpKind.NO_LOOKUP,
        _to_review(ReviewReason.NO_LOOKUP),
    ),
    Row(
        "adapter_failing",
        lambda case: (
            case.looked_up.kind is LookedUpKind.ADAPTER_FAILED
            and case.attempt.adapter_failures + 1 >= ADAPTER_FAILURES_NEEDED
        ),
        _to_review(ReviewReason.ADAPTER_FAILING),
    ),
    Row(
        "unresolved",
        lambda case: case.decides_nothing and case.attempt.checks + 1 >= case.attempt.max_checks,
        _unresolved,
    ),
    Row("unavailable", lambda case: case.unreachable, _stay),
    Row("several_matches", lambda case: len(case.counted) >= 2, _several, exists=True),
    Row("hash_mismatch", _other_content, _to_review(ReviewReason.HASH_MISMATCH), exists=True),
    Row("reversed", _exists("reversed"), _to_review(ReviewReason.REVERSED), exists=True),
    Row(
        "failed_there",
        _exists("failed"),
        _failed_there,
        exists=True,
    ),
    Row("in_progress", lambda case: case.in_progress, _stay),
    Row(
        "confirmed",
        _exists("done"),
        lambda case: Follows(to=State.OUTCOME_CONFIRMED, record=case.only),
        exists=True,
    ),
    Row("absent_too_early", lambda case: case.absent_too_early, _stay),
    Row(
        "conflicting_evidence",
        lambda case: case.absent and _contradicted(case),
        _to_review(ReviewReason.CONFLICTING_EVIDENCE),
    ),
    Row("closed", lambda case: case.absent and _closing_cause(case) is not None, _no_effect),
    Row(
        "not_idempotent",
        lambda case: case.absent and not case.attempt.idempotent,
        _to_review(ReviewReason.NOT_IDEMPOTENT),
    ),
    Row(
        "key_window_over",
        lambda case: case.absent and case.key_window_over,
        _to_review(ReviewReason.KEY_WINDOW_OVER),
    ),
    Row(
        "authority_refused",
        lambda case: case.absent and bool(case.refused),
        lambda case: replace(_to_review(ReviewReason.AUTHORITY_REFUSED)(case), refused=case.refused),
    ),
    Row(
        "attempts_used_up",
        lambda case: case.absent and case.attempts_used_up,
        _to_review(ReviewReason.ATTEMPTS_USED_UP),
    ),
    Row(
        "approval_required",
        lambda case: case.absent and case.attempt.ever_held,
        _to_review(ReviewReason.APPROVAL_REQUIRED),
    ),
    Row(
        "suspected_duplicate",
        lambda case: case.absent and case.attempt.twin_sent,
        _to_review(ReviewReason.SUSPECTED_DUPLICATE),
    ),
    Row("absent", lambda case: case.absent, _no_effect),
)

EVIDENCE = Row("evidence", lambda _: True, _evidence)
