"""The same call, in the same step of the same run, under another operation key."""

from __future__ import annotations

from typing import Any

import pytest

from ledger import lifecycle
from ledger.lifecycle import IntentKind, LeaveGiven, LeaveProblem, LeaveRefused
from ledger.models import Attempt
from ledger.rules.states import State
from ledger.transactions import durable
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db

PLACE: dict[str, Any] = {"run": "nightly", "step": "7"}


@pytest.fixture
def people() -> Cast:
    return cast()


def approve(people: Cast, attempt: Attempt) -> None:
    item = make.item_of(attempt)
    durable(lambda: lifecycle.approve(item_id=item.pk, by=people.approver, why="meant twice"))


def test_a_twin_is_held_at_birth(people: Cast) -> None:
    make.dispatched(people.key, **PLACE)
    answer = make.posted(people.key, make.intent_of(**PLACE))
    assert answer.kind is IntentKind.HELD
    assert answer.standing is not None
    assert answer.standing.reason == "suspected_duplicate"


@pytest.mark.parametrize(
    "other",
    [{"run": "nightly", "step": "8"}, {"run": "weekly", "step": "7"}, {"run": "nightly"}, {}],
    ids=["step", "run", "no step", "no place"],
)
def test_another_place_is_no_twin(people: Cast, other: dict[str, Any]) -> None:
    make.dispatched(people.key, **PLACE)
    assert make.posted(people.key, make.intent_of(**other)).kind is IntentKind.CREATED


def test_other_arguments_are_no_twin(people: Cast) -> None:
    make.dispatched(people.key, **PLACE)
    other = make.intent_of(args={"to": "eve@example.org"}, **PLACE)
    assert make.posted(people.key, other).kind is IntentKind.CREATED


def test_what_did_not_happen_is_no_twin(people: Cast) -> None:
    refused = make.dispatched(people.key, **PLACE)
    make.reported(people.key, refused, "failed", no_effect=True, error_class="declined")
    assert make.posted(people.key, make.intent_of(**PLACE)).kind is IntentKind.CREATED


def test_an_approval_that_was_shown_the_twin_sends_it_on_purpose(people: Cast) -> None:
    make.dispatched(people.key, **PLACE)
    meant = make.recorded(people.key, **PLACE)
    approve(people, meant)
    assert make.send(people.key, make.fresh(meant)).state == State.DISPATCHED


def test_a_twin_sent_after_the_approval_holds_it_again(people: Cast) -> None:
    first = make.dispatched(people.key, **PLACE)
    meant = make.recorded(people.key, **PLACE)
    approve(people, meant)
    third = make.recorded(people.key, **PLACE)
    approve(people, third)
    make.send(people.key, make.fresh(third))
    answer = make.ask_leave(people.key, make.fresh(meant))
    assert isinstance(answer, LeaveRefused)
    assert answer.problem is LeaveProblem.ON_HOLD
    meant = make.fresh(meant)
    assert (meant.state, meant.reason) == (State.MANUAL_REVIEW, "suspected_duplicate")
    assert meant.approvals.get().void_cause == "a twin was sent"
    assert make.fresh(first).state == State.DISPATCHED


def test_a_twin_that_was_never_sent_stops_nobody_at_leave(people: Cast) -> None:
    first = make.recorded(people.key, **PLACE)
    make.recorded(people.key, **PLACE)
    answer = make.ask_leave(people.key, first)
    assert isinstance(answer, LeaveGiven)


def test_the_desk_shows_the_twin(people: Cast) -> None:
    from review.queries import item_page

    first = make.unknown(people.key, operation_key="mail:1", **PLACE)
    meant = make.recorded(people.key, **PLACE)
    page = item_page(people.operator, make.item_of(meant).pk)
    assert [(twin.operation_key, twin.sent, twin.open_item_id) for twin in page.twins] == [
        ("mail:1", True, make.item_of(first).pk)
    ]


def test_found_absent_beside_a_twin_that_was_sent_it_stays_with_people(people: Cast) -> None:
    """Sent again it would be asked about at leave: so the question does not leave the desk by a re-check."""
    lost = make.unknown(people.key, **PLACE)
    meant = make.recorded(people.key, **PLACE)
    approve(people, meant)
    make.send(people.key, make.fresh(meant))
    lost = make.found_absent(lost)
    assert (lost.state, lost.reason) == (State.MANUAL_REVIEW, "suspected_duplicate")
    approve(people, lost)
    assert isinstance(make.ask_leave(people.key, lost), LeaveGiven)
