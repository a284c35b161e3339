"""Whose a dead letter is: the team's whom a rule with its destination names, else the first one's."""

from __future__ import annotations

import pytest

from ledger.models import Delivery
from review.ownership_rules import BadRules, TypedRule, read_rules, try_rules
from review.queries.ownership import ownership_page
from tests.review.teams import in_force, team
from tests.support import make, told
from tests.support.cast import Cast

pytestmark = pytest.mark.django_db

ANY_QUESTION = TypedRule("*", owner="operator")


def dead_letter(people: Cast, tool: str = make.TICKET) -> Delivery:
    return told.dead(make.confirmed(people.key, tool), people.operator)


def owner_of(delivery: Delivery) -> str:
    delivery.refresh_from_db()
    assert delivery.owner_group is not None
    return delivery.owner_group.name


@pytest.fixture
def books(people: Cast) -> Cast:
    """Somebody hears of everything, under the name of `books`; and there is a team for it."""
    told.destination(people.tenant)
    team(people, "Bookkeepers", people.operator)
    return people


def to(destination: str, *, tool: str = "*", effect: str = "", owner: str = "#Bookkeepers") -> TypedRule:
    return TypedRule(tool, effect=effect, owner=owner, destination=destination)


@pytest.mark.parametrize(
    ("rule", "owner"),
    [
        (to("books"), "Bookkeepers"),
        (to("b*"), "Bookkeepers"),
        (to("*", tool="ticket.*"), "Bookkeepers"),
        (to("*", effect="write"), "Bookkeepers"),
        (to("crm"), "Review desk"),
        (to("*", tool="refund.*"), "Review desk"),
        (to("*", effect="payment"), "Review desk"),
    ],
    ids=str,
)
def test_the_first_rule_with_its_destination_names_its_team(books: Cast, rule: TypedRule, owner: str) -> None:
    in_force(books, ANY_QUESTION, rule, to("*", owner="#Review desk"))
    assert owner_of(dead_letter(books)) == owner


def test_rules_of_questions_say_nothing_of_dead_letters_and_the_other_way_round(books: Cast) -> None:
    in_force(books, to("*"), ANY_QUESTION)
    question = make.item_of(make.unknown(books.key))
    assert (question.owner, question.owner_group.name) == (books.operator, "Review desk")
    assert owner_of(dead_letter(books)) == "Bookkeepers"


def test_a_team_in_which_nobody_decides_gets_none(books: Cast) -> None:
    in_force(books, to("*"))
    books.operator.review_groups.clear()
    assert owner_of(dead_letter(books)) == "Review desk"


def test_without_rules_they_are_the_first_teams(books: Cast) -> None:
    assert owner_of(dead_letter(books)) == "Review desk"


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        (to("books", owner="operator"), "owner"),
        (to("books\n"), "destination"),
        (to("b" * 300), "destination"),
        (TypedRule("*", reason="unknown", owner="#Bookkeepers", destination="books"), "reason"),
    ],
)
def test_what_a_rule_of_dead_letters_cannot_say(books: Cast, rule: TypedRule, field: str) -> None:
    with pytest.raises(BadRules) as wrong:
        read_rules(books.tenant, [rule])
    assert [fault[1] for fault in wrong.value.faults] == [field]


def test_the_page_and_the_dry_run_count_questions_alone(books: Cast) -> None:
    make.unknown(books.key)
    tried = try_rules(books.admin, "acme", [to("*"), ANY_QUESTION])
    assert (tried.matched, tried.every) == ((0, 1), 1)
    in_force(books, to("b*"), ANY_QUESTION)
    first, second = ownership_page(books.viewer, "acme").rules
    assert (first.destination_glob, first.open_items, first.owner) == ("b*", None, "#Bookkeepers")
    assert (second.destination_glob, second.open_items) == ("", 1)
