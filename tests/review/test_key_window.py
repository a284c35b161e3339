"""The clock of a provider key as people see it: on the item, in the queue's order, and where they approve."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ledger.approvals import Binding, binding_of
from ledger.authority import key_window_of
from ledger.lifecycle import DecisionRefused, LeaveGiven
from ledger.models import Approval, ApprovalUse, Attempt, Vote
from ledger.policies import rule_of
from ledger.reconciliation import sweep_once
from ledger.rules.key_window import Protection
from ledger.rules.vocabulary import DecisionKind, Escalation
from ledger.transactions import database_clock
from review import decisions
from review.queries import QueueFilters, queue
from tests.review.pages import action, page_of
from tests.support import make
from tests.support.cast import Cast

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def consequence(people: Cast, attempt: Attempt) -> str:
    return action(page_of(people.approver, attempt), DecisionKind.APPROVE).consequence


@pytest.mark.parametrize(
    ("ago", "says", "never"),
    [
        (HOUR, "the provider honours keys for 24 h, 23 h left. Your", "nothing prevents"),
        (DAY - 2 * HOUR, "2 h left: sent after ", "forgot"),
        (DAY - 2 * HOUR, "UTC it may be a second effect, and nothing prevents it", "forgot"),
        (
            DAY + 3 * HOUR,
            "forgot this one 3 h ago: if the earlier send did happen, this is a second effect, and nothing",
            "left",
        ),
    ],
)
def test_approving_says_what_protects_and_what_no_longer_does(
    people: Cast, ago: timedelta, says: str, never: str
) -> None:
    """A vote for a mail lives four hours: in that time two hours of protection may be over."""
    said = consequence(people, make.first_sent(make.unknown(people.key), ago - MINUTE))
    assert says in said
    assert never not in said


def test_approving_says_where_nothing_ever_protected(people: Cast) -> None:
    assert "honours no keys, so nothing protects" in consequence(people, make.for_a_person(people.key))


def test_the_item_and_its_row_show_the_same_clock(people: Cast) -> None:
    attempt = make.first_sent(make.unknown(people.key), DAY - 9 * MINUTE)
    sweep_once()
    page, (row,) = page_of(people.viewer, attempt), queue(people.viewer, QueueFilters()).rows
    assert attempt.key_first_sent_at is not None
    for shown in (page.evidence.key_window, row.key_window):
        assert (shown.protection, shown.ends_at) == (Protection.CLOSING, attempt.key_first_sent_at + DAY)
    assert row.escalated == page.escalated
    assert page.escalated is not None
    assert page.escalated.because is Escalation.KEY_WINDOW_CLOSING
    assert page.escalated.words == "the provider is about to forget the key"


def test_what_closes_next_comes_first_and_what_is_over_presses_nobody(people: Cast) -> None:
    ages = (HOUR, DAY + HOUR, DAY - MINUTE, 20 * HOUR)
    attempts = [make.first_sent(make.unknown(people.key), ago) for ago in ages]
    without = make.for_a_person(people.key)
    shown = [row.attempt_id for row in queue(people.viewer, QueueFilters()).rows]
    fresh, over, closing, later = (attempt.pk for attempt in attempts)
    assert shown == [closing, later, fresh, over, without.pk]


KEEPING_KEYS = {**make.TOOLS[make.TICKET], "idempotent": True, "key_ttl_s": 86_400}


def lost(people: Cast, ago: timedelta) -> Attempt:
    """A sent ticket that a person may approve, and whose provider knows its key for a day."""
    make.policy(people.tenant, by=people.admin, tools={**make.TOOLS, make.TICKET: KEEPING_KEYS})
    return make.first_sent(make.for_a_person(people.key), ago)


def shown(attempt: Attempt, ago: timedelta) -> Binding:
    """What a page said that was opened so long ago."""
    binding = binding_of(attempt, key_window_of(attempt, rule_of(attempt), database_clock() - ago))
    assert binding is not None
    return binding


def test_a_page_from_before_the_window_closed_decides_nothing_after_it(people: Cast) -> None:
    attempt = lost(people, DAY + MINUTE)
    before, item = shown(attempt, 2 * MINUTE), make.item_of(attempt)
    assert "and nothing prevents a second effect after that" in before.meaning
    with pytest.raises(DecisionRefused, match=r"UTC, the provider forgot the key.*second effect") as refused:
        decisions.approve(people.approver, item.pk, why="go", shown_digest=before.shown)
    assert refused.value.code == "protection-over"
    assert not Vote.objects.exists()
    now = page_of(people.approver, attempt).ballot
    assert now is not None
    assert "the provider forgot it at" in now.meaning
    decisions.approve(people.approver, item.pk, why="all the same", shown_digest=now.digest)
    assert Vote.objects.get().meaning == now.meaning


def test_a_new_key_asked_for_on_such_a_page_is_read_again_too(people: Cast) -> None:
    attempt = lost(people, DAY + MINUTE)
    before, item = shown(attempt, 2 * MINUTE), make.item_of(attempt)
    with pytest.raises(DecisionRefused) as refused:
        decisions.approve(
            people.approver, item.pk, why="go", new_provider_key=True, shown_digest=before.shown
        )
    assert refused.value.code == "protection-over"


def test_while_the_window_is_open_a_page_stays_good(people: Cast) -> None:
    """Also one from before it was about to close: until when it protects is what it said."""
    attempt = lost(people, DAY - MINUTE)
    early = shown(attempt, HOUR)
    assert early.shown == shown(attempt, timedelta(0)).shown
    decisions.approve(people.approver, make.item_of(attempt).pk, why="go", shown_digest=early.shown)
    assert Approval.objects.exists()


def test_another_change_is_called_by_its_own_name(people: Cast) -> None:
    """Where more has changed than the protection, it is not said to be all."""
    attempt = lost(people, DAY + MINUTE)
    before = shown(attempt, 2 * MINUTE)
    make.policy(people.tenant, by=people.admin, tools={**make.TOOLS, make.TICKET: make.TOOLS[make.TICKET]})
    with pytest.raises(DecisionRefused) as refused:
        decisions.approve(people.approver, make.item_of(attempt).pk, why="go", shown_digest=before.shown)
    assert refused.value.code == "changed-while-reading"


def test_a_yes_given_inside_the_window_is_good_for_leave_after_it(people: Cast) -> None:
    """It was given for a send, and said what would protect it until when; its own end bounds it. No send
    without an approval may follow then."""
    attempt = lost(people, DAY - MINUTE)
    inside = shown(attempt, timedelta(0))
    decisions.approve(people.approver, make.item_of(attempt).pk, why="go", shown_digest=inside.shown)
    make.first_sent(attempt, DAY + MINUTE)
    sweep_once()
    assert Approval.objects.get().voided_at is None
    given = make.ask_leave(people.key, make.fresh(attempt))
    assert isinstance(given, LeaveGiven)
    assert ApprovalUse.objects.get().attempt_id == given.attempt.pk
    assert "nothing prevents a second effect after that" in Vote.objects.get().meaning
