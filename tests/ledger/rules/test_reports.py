"""Reports of agents against the promises of the domain, each asked of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ledger.rules.reports import ErrorClass, Report, Reported, ReportFacts, judge
from ledger.rules.states import FINAL, State, check_move
from ledger.rules.vocabulary import ReviewReason

CONTRADICTIONS = ("hash_mismatch", "reversed", "several_matches", "conflicting_evidence")
DEFINITE = ("validation", "declined", "refused", "not_connected")

rarely = st.sampled_from([False, False, False, True])
reports = st.builds(
    Report,
    outcome=st.sampled_from(Reported),
    receipt=st.booleans(),
    no_effect=st.booleans(),
    retryable=st.booleans(),
    error_class=st.sampled_from(ErrorClass),
)


@st.composite
def attempts(draw: st.DrawFn) -> ReportFacts:
    """Facts that can be: a state that leave alone leads to was sent, and an open question has a reason."""
    state = draw(st.sampled_from([*State, *[State.DISPATCHED, State.UNKNOWN, State.MANUAL_REVIEW] * 3]))
    after_leave = state in (State.DISPATCHED, State.UNKNOWN, State.FAILED_RETRYABLE, State.OUTCOME_CONFIRMED)
    before_leave = state in (State.INTENT_RECORDED, State.CANCELLED)
    asked = state in (State.UNKNOWN, State.MANUAL_REVIEW)
    confirmed = draw(rarely) and state is not State.OUTCOME_CONFIRMED
    return ReportFacts(
        state=state,
        sent=after_leave or (not before_leave and draw(st.booleans())),
        reason=draw(st.sampled_from(ReviewReason)) if asked else None,
        key_revoked=draw(rarely),
        confirm_by_lookup=draw(rarely),
        other_confirmed=confirmed,
        same_effect=draw(rarely) and (confirmed or state is State.OUTCOME_CONFIRMED),
        second_reference=draw(rarely),
        contradicted=draw(rarely),
        found_absent=draw(rarely),
        no_new_send=draw(rarely),
        other_content=draw(rarely),
    )


def believed_no_effect(report: Report) -> bool:
    return report.outcome == "failed" and report.no_effect and report.error_class in DEFINITE


@given(attempts(), reports)
def test_whatever_follows_is_a_legal_move(facts: ReportFacts, report: Report) -> None:
    follows = judge(facts, report)
    if follows.to is not None:
        sent = facts.sent or follows.reason is ReviewReason.SENT_WITHOUT_LEAVE
        via = State.UNKNOWN if (facts.state, follows.to) in _THROUGH_UNKNOWN else facts.state
        check_move(via, follows.to, sent=sent, maybe_sent=False, conflict_open=False)


_THROUGH_UNKNOWN = {
    (State.DISPATCHED, State.MANUAL_REVIEW),
    (State.DISPATCHED, State.SUPERSEDED),
}


@given(attempts(), reports)
def test_a_final_state_never_moves(facts: ReportFacts, report: Report) -> None:
    final = replace(facts, state=State.OUTCOME_CONFIRMED) if facts.state not in FINAL else facts
    assert judge(final, report).to is None


@given(attempts(), reports)
def test_only_a_durable_receipt_confirms(facts: ReportFacts, report: Report) -> None:
    if judge(facts, report).to is State.OUTCOME_CONFIRMED:
        assert report.outcome == "succeeded"
        assert report.receipt
        assert facts.sent
        assert not any((facts.key_revoked, facts.confirm_by_lookup, facts.other_confirmed))
        assert not facts.other_content
        assert facts.reason not in CONTRADICTIONS


@given(attempts(), reports)
def test_a_receipt_of_a_trusted_key_settles_whatever_is_open(facts: ReportFacts, report: Report) -> None:
    plain = replace(
        facts,
        key_revoked=False,
        confirm_by_lookup=False,
        other_confirmed=False,
        second_reference=False,
        other_content=False,
    )
    receipt = replace(report, outcome=Reported.SUCCEEDED, receipt=True)
    open_states = ("DISPATCHED", "UNKNOWN", "MANUAL_REVIEW", "FAILED_RETRYABLE")
    if plain.state in open_states and plain.sent and plain.reason not in CONTRADICTIONS:
        assert judge(plain, receipt).to is State.OUTCOME_CONFIRMED


@given(attempts(), reports)
def test_a_receipt_of_other_content_is_for_a_person(facts: ReportFacts, report: Report) -> None:
    other = replace(
        facts, key_revoked=False, other_confirmed=False, second_reference=False, other_content=True, sent=True
    )
    receipt = replace(report, outcome=Reported.SUCCEEDED, receipt=True)
    open_states = ("DISPATCHED", "UNKNOWN", "FAILED_RETRYABLE")
    if other.state in open_states and other.reason not in CONTRADICTIONS:
        follows = judge(other, receipt)
        assert (follows.to, follows.reason) == (State.MANUAL_REVIEW, ReviewReason.HASH_MISMATCH)


@given(attempts(), reports)
def test_a_failure_is_believed_only_with_a_definite_class(facts: ReportFacts, report: Report) -> None:
    to = judge(facts, report).to
    if to in (State.FAILED, State.FAILED_RETRYABLE):
        assert believed_no_effect(report)
        assert not facts.key_revoked
    if to is State.FAILED_RETRYABLE:
        assert report.retryable
        assert not facts.no_new_send
        assert not facts.contradicted
        assert facts.state in (State.DISPATCHED, State.UNKNOWN)


@given(attempts(), reports)
def test_a_receipt_ends_what_an_absent_allowed(facts: ReportFacts, report: Report) -> None:
    sendable = replace(
        facts,
        state=State.FAILED_RETRYABLE,
        sent=True,
        reason=None,
        found_absent=True,
        key_revoked=False,
    )
    if report.receipt and not believed_no_effect(report):
        assert judge(sendable, report).to not in (None, State.FAILED_RETRYABLE)


@given(attempts(), reports)
def test_a_revoked_key_settles_nothing_and_ends_what_is_in_flight(facts: ReportFacts, report: Report) -> None:
    follows = judge(replace(facts, key_revoked=True), report)
    assert follows.reason is None
    assert follows.to is (State.UNKNOWN if facts.state is State.DISPATCHED else None)


@given(attempts(), reports)
def test_what_never_had_leave_goes_to_a_person_or_fails(facts: ReportFacts, report: Report) -> None:
    unsent = replace(facts, state=State.INTENT_RECORDED, sent=False, key_revoked=False)
    follows = judge(unsent, report)
    if believed_no_effect(report):
        assert follows.to is State.FAILED
    else:
        assert (follows.to, follows.reason) == (State.MANUAL_REVIEW, ReviewReason.SENT_WITHOUT_LEAVE)


@given(attempts(), reports)
def test_nothing_in_flight_stays_so_after_a_report(facts: ReportFacts, report: Report) -> None:
    in_flight = replace(facts, state=State.DISPATCHED, sent=True, reason=None)
    assert judge(in_flight, report).to is not None


@given(attempts(), reports)
def test_in_review_a_report_of_no_effect_is_evidence(facts: ReportFacts, report: Report) -> None:
    in_review = replace(facts, state=State.MANUAL_REVIEW, sent=True, second_reference=False)
    if report.outcome != "succeeded":
        assert judge(in_review, report).to is None


@given(attempts(), reports)
def test_a_second_effect_is_never_folded_into_a_confirmed_one(facts: ReportFacts, report: Report) -> None:
    beside = replace(facts, other_confirmed=True, key_revoked=False, sent=True)
    assume(beside.state not in FINAL and report.outcome == "succeeded")
    follows = judge(beside, report)
    assert follows.to is not State.OUTCOME_CONFIRMED
    if report.receipt and not beside.same_effect and beside.state is not State.MANUAL_REVIEW:
        assert (follows.to, follows.reason) == (State.MANUAL_REVIEW, ReviewReason.CONFLICTING_EVIDENCE)


@given(attempts(), reports)
def test_a_success_against_a_final_state_is_a_conflict_unless_the_same_effect(
    facts: ReportFacts, report: Report
) -> None:
    closed = replace(facts, state=State.FAILED, key_revoked=False, second_reference=False)
    follows = judge(closed, replace(report, outcome=Reported.SUCCEEDED))
    assert follows.conflict == (not closed.same_effect)


@pytest.mark.parametrize("error_class", ErrorClass)
def test_which_classes_can_know_that_nothing_happened(error_class: ErrorClass) -> None:
    report = Report(Reported.FAILED, no_effect=True, retryable=True, error_class=error_class)
    assert report.believed_no_effect == (error_class in DEFINITE)
