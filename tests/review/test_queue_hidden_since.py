"""A value that a later policy hides is not found out letter by letter: neither by rows nor by numbers."""

from __future__ import annotations

import pytest

from ledger.models import ReviewItem
from review import decisions
from review.queries import QueueFilters, Tab, queue
from review.queries.changes import Changes, changes_since
from tests.review.pages import seen
from tests.support import make
from tests.support.cast import Cast


@pytest.fixture
def ticket(people: Cast) -> ReviewItem:
    item = make.item_of(make.for_a_person(people.key, operation_key="ticket:printer"))
    masked = {**make.TOOLS[make.TICKET], "mask": ["/title"]}
    make.policy(people.tenant, by=people.admin, tools={**make.TOOLS, make.TICKET: masked})
    return item


def test_its_letters_find_nothing_and_the_key_still_does(people: Cast, ticket: ReviewItem) -> None:
    mail = make.item_of(make.unknown(people.key))
    assert seen(people.viewer, text="on f") == []
    assert seen(people.viewer, text="ticket:p") == [ticket.pk]
    assert seen(people.viewer, text="ada@") == [mail.pk]
    changed = changes_since(people.viewer, QueueFilters(text="on f"), make.fresh(ticket.attempt).created_at)
    assert changed == Changes(0, 0)


def test_it_is_as_hidden_where_it_was_decided_or_waits(people: Cast, ticket: ReviewItem) -> None:
    decisions.approve(people.approver, ticket.pk, why="go")
    page = queue(people.viewer, QueueFilters(text="on f"))
    assert set(page.counts.values()) == {0}
    make.send(people.key, make.fresh(ticket.attempt))
    assert set(queue(people.viewer, QueueFilters(text="on f")).counts.values()) == {0}
    assert seen(people.viewer, Tab.DECIDED, text="ticket:p") == [ticket.pk]


@pytest.mark.usefixtures("ticket")
def test_what_was_stored_under_the_mask_is_searched_as_ever(people: Cast) -> None:
    args = {"title": "Printer on fire", "room": "cellar"}
    stored = make.item_of(make.for_a_person(people.key, args=args))
    assert seen(people.viewer, text="cellar") == [stored.pk]
    assert seen(people.viewer, text="on f") == []


def test_following_a_later_rule_hides_it_too(people: Cast) -> None:
    """The attempt is then under the rule that masks; what was stored of its arguments is as it was."""
    attempt = make.recorded(people.key, make.TICKET)
    stricter = {**make.TOOLS[make.TICKET], "approvals": 2, "mask": ["/title"]}
    rules = make.policy(people.tenant, by=people.admin, tools={**make.TOOLS, make.TICKET: stricter})
    make.reported(people.key, make.send(people.key, attempt), "unknown")
    assert make.fresh(attempt).policy == rules
    assert seen(people.viewer, text="ticket.open:") == [make.item_of(attempt).pk]
    assert seen(people.viewer, text="on f") == []


def test_only_what_holds_a_masked_value_is_left_out(people: Cast) -> None:
    """Wherever its pointer leads: into lists, and to names with a slash."""
    args = {"to": [{"a/b": "Ada Lovelace"}], "title": "Printer"}
    holds = make.item_of(make.for_a_person(people.key, args=args))
    lacks = make.item_of(make.for_a_person(people.key, args={"to": [], "title": "Printer"}))
    mask = {**make.TOOLS[make.TICKET], "mask": ["/to/0/a~1b", "/gone"]}
    assert set(seen(people.viewer, text="Printer")) == {holds.pk, lacks.pk}
    make.policy(people.tenant, by=people.admin, tools={**make.TOOLS, make.TICKET: mask})
    assert seen(people.viewer, text="Printer") == [lacks.pk]
