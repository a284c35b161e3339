"""What an agent's report of an outcome settles: the first row that holds. Facts are always accepted; what a
report may not settle is kept as evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from ledger.rules.states import FINAL, State
from ledger.rules.vocabulary import RECEIPT_IS_ONLY_EVIDENCE, ReviewReason


class Reported(StrEnum):
    """What the agent says became of its send."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNKNOWN = "unknown"


class ErrorClass(StrEnum):
    """Why the agent says it failed."""

    VALIDATION = "validation"
    DECLINED = "declined"
    REFUSED = "refused"
    NOT_CONNECTED = "not_connected"
    TIMEOUT = "timeout"
    RESET = "reset"
    UNKNOWN = "unknown"


PROVES_NO_EFFECT = frozenset(
    {ErrorClass.VALIDATION, ErrorClass.DECLINED, ErrorClass.REFUSED, ErrorClass.NOT_CONNECTED}
)


@dataclass(frozen=True)
class Report:
    """One report. `receipt`: it carries a result reference or the provider's request id."""

    outcome: Reported
    receipt: bool = False
    no_effect: bool = False
    retryable: bool = False
    error_class: ErrorClass = ErrorClass.UNKNOWN

    @property
    def succeeded(self) -> bool:
        return self.outcome is Reported.SUCCEEDED

    @property
    def believed_no_effect(self) -> bool:
        """A definite failure: only these classes can know that nothing happened."""
        return self.outcome is Reported.FAILED and self.no_effect and self.error_class in PROVES_NO_EFFECT


@dataclass(frozen=True)
class ReportFacts:
    """What the ledger knows of the attempt a report is about.

    `other_confirmed`: another attempt of the operation is. `same_effect`: the report names the reference of
    the confirmed attempt. `second_reference`: it names another provider request id than the one stored.
    `contradicted`: a success report, receipt or finding is already in hand. `found_absent`: a coming send
    would rest on a look-up's *absent*. `no_new_send`: cancelled or rejected. `other_content`: the report is
    about other arguments than the attempt's.
    """

    state: State
    sent: bool
    reason: ReviewReason | None
    key_revoked: bool
    confirm_by_lookup: bool
    other_confirmed: bool
    same_effect: bool
    second_reference: bool
    contradicted: bool
    found_absent: bool
    no_new_send: bool
    other_content: bool = False


@dataclass(frozen=True)
class Settles:
    """What follows: the next state (None: it stays), why a person is asked, or a conflict about a final
    state."""

    row: str = ""
    to: State | None = None
    reason: ReviewReason | None = None
    conflict: bool = False
    look_up_now: bool = False


Row = tuple[str, Callable[[ReportFacts, Report], bool], Callable[[ReportFacts, Report], Settles]]

EVIDENCE = Settles()


def judge(facts: ReportFacts, report: Report) -> Settles:
    """What this report settles for this attempt."""
    for name, holds, settles in ROWS:
        if holds(facts, report):
            follows = settles(facts, report)
            return replace(follows, row=name, to=None if follows.to is facts.state else follows.to)
    raise AssertionError("the last row always holds")


def _to(state: State, reason: ReviewReason | None = None, *, look_up_now: bool = False) -> Settles:
    return Settles(to=state, reason=reason, look_up_now=look_up_now)


def _evidence(_: ReportFacts, __: Report) -> Settles:
    return EVIDENCE


def _lost_contact(facts: ReportFacts, _: Report) -> Settles:
    return _to(State.UNKNOWN, look_up_now=True) if facts.state is State.DISPATCHED else EVIDENCE


def _conflict(_: ReportFacts, __: Report) -> Settles:
    return Settles(reason=ReviewReason.CONFLICTING_EVIDENCE, conflict=True)


def _to_conflict_review(_: ReportFacts, __: Report) -> Settles:
    return _to(State.MANUAL_REVIEW, ReviewReason.CONFLICTING_EVIDENCE)


def _contradicts_final(facts: ReportFacts, report: Report) -> bool:
    if facts.state not in FINAL or facts.same_effect:
        return False
    if facts.second_reference:
        return True
    if facts.state is State.OUTCOME_CONFIRMED:
        return report.succeeded and report.receipt
    return report.succeeded or not (facts.sent or report.believed_no_effect)


def _success_without_proof(facts: ReportFacts, _: Report) -> Settles:
    if facts.state is State.FAILED_RETRYABLE:
        return _to(State.MANUAL_REVIEW, ReviewReason.CONFLICTING_EVIDENCE)
    if facts.state in (State.DISPATCHED, State.UNKNOWN):
        return _to(State.UNKNOWN, look_up_now=True)
    return EVIDENCE


def _receipt_after_absent(facts: ReportFacts, report: Report) -> bool:
    """The provider had it after all: nothing may be sent again on the ground that it had not."""
    unproven = facts.state is State.FAILED_RETRYABLE and facts.found_absent
    return unproven and report.receipt and not report.believed_no_effect


def _no_effect(facts: ReportFacts, report: Report) -> Settles:
    retryable = report.retryable and not facts.no_new_send
    return _to(State.FAILED_RETRYABLE if retryable else State.FAILED)


ROWS: tuple[Row, ...] = (
    ("key_revoked", lambda facts, _report: facts.key_revoked, _lost_contact),
    ("contradicts_final", _contradicts_final, _conflict),
    ("final", lambda facts, _report: facts.state in FINAL, _evidence),
    (
        "never_sent_no_effect",
        lambda facts, report: not facts.sent and report.believed_no_effect,
        lambda _facts, _report: _to(State.FAILED),
    ),
    (
        "sent_without_leave",
        lambda facts, _report: not facts.sent,
        lambda _facts, _report: _to(State.MANUAL_REVIEW, ReviewReason.SENT_WITHOUT_LEAVE),
    ),
    (
        "same_effect_as_confirmed",
        lambda facts, report: facts.other_confirmed and report.succeeded and facts.same_effect,
        lambda _facts, _report: _to(State.SUPERSEDED),
    ),
    (
        "second_effect",
        lambda facts, report: facts.other_confirmed and report.succeeded and report.receipt,
        _to_conflict_review,
    ),
    ("second_reference", lambda facts, _report: facts.second_reference, _to_conflict_review),
    (
        "receipt_is_evidence",
        lambda facts, report: report.succeeded and facts.reason in RECEIPT_IS_ONLY_EVIDENCE,
        _evidence,
    ),
    (
        "other_content",
        lambda facts, report: facts.other_content and (report.succeeded or report.receipt),
        lambda _facts, _report: _to(State.MANUAL_REVIEW, ReviewReason.HASH_MISMATCH),
    ),
    (
        "receipt",
        lambda facts, report: report.succeeded and report.receipt and not facts.confirm_by_lookup,
        lambda _facts, _report: _to(State.OUTCOME_CONFIRMED),
    ),
    ("success_without_proof", lambda _facts, report: report.succeeded, _success_without_proof),
    (
        "no_effect_contradicted",
        lambda facts, report: report.believed_no_effect and facts.contradicted,
        _lost_contact,
    ),
    (
        "no_effect",
        lambda facts, report: report.believed_no_effect and facts.state in (State.DISPATCHED, State.UNKNOWN),
        _no_effect,
    ),
    ("receipt_after_absent", _receipt_after_absent, _to_conflict_review),
    ("lost_contact", lambda _facts, _report: True, _lost_contact),
)
