"""What the page of an item says of its run's money: the very words of the refusal."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from ledger.lifecycle import DecisionRefused, LeaveRefused, open_run
from ledger.models import Attempt
from ledger.rules.amounts import Amount
from ledger.rules.vocabulary import DecisionKind
from ledger.transactions import durable
from review import decisions
from review.queries import ThenNow
from tests.review.pages import action, page_of
from tests.support import make
from tests.support.cast import Cast

COST = {"amount": "/amount", "unit": "/currency"}
WORDS = "EUR: limit 200.00, reserved 125, spent 0, wanted 125"


def priced(people: Cast, **changed: Any) -> None:
    rule = {**make.TOOLS[make.REFUND], "review": "always", "approvals": 1, "cost": COST, **changed}
    make.policy(people.tenant, by=people.admin, tools={**make.TOOLS, make.REFUND: rule})


def opened(people: Cast, **limits: Amount | None) -> None:
    durable(lambda: open_run(key=people.key, name="run-7", limits=limits))


def budget(people: Cast, attempt: Attempt) -> ThenNow:
    (row,) = (row for row in page_of(people.viewer, attempt).then_now if row.name == "Budget")
    return row


def refund(people: Cast, **intent: Any) -> Attempt:
    return make.recorded(people.key, make.REFUND, run="run-7", **intent)


def test_amounts_then_and_now(people: Cast) -> None:
    priced(people)
    opened(people, tool_calls=10, EUR=Decimal("200.00"))
    row = budget(people, refund(people))
    assert (row.ok, row.then) == (True, "at most 10 tool calls, at most 200.00 EUR")
    assert row.now == "10 of 10 tool calls left, 200.00 of 200.00 EUR left; a send takes 125 EUR"


def test_button_page_press_answer_and_event_say_the_same(people: Cast) -> None:
    priced(people)
    opened(people, EUR=Decimal("200.00"))
    first, second, third = (refund(people) for _ in range(3))
    for attempt in (first, second):
        decisions.approve(people.approver, make.item_of(attempt).pk, why="owed")
    make.send(people.key, make.fresh(first))
    refused = make.ask_leave(people.key, make.fresh(second))
    assert isinstance(refused, LeaveRefused)
    assert refused.because == (WORDS,)
    event = second.operation.events.get(kind="attempt.leave_refused")
    assert event.data["because"] == [WORDS]
    page = page_of(people.approver, third)
    assert action(page, DecisionKind.APPROVE).why_disabled == ("budget-exhausted", WORDS)
    row = budget(people, third)
    assert (row.ok, row.reasons) == (False, ("budget-exhausted",))
    assert row.words == f"The run's budget is used up. {WORDS}."
    with pytest.raises(DecisionRefused) as pressed:
        decisions.approve(people.approver, page.item_id, why="owed")
    assert pressed.value.reasons == ("budget-exhausted", WORDS)


def test_a_masked_amount_stays_masked(people: Cast) -> None:
    priced(people, mask=["/amount"])
    opened(people, EUR=Decimal(100))
    row = budget(people, refund(people))
    assert row.now == "100 of 100 EUR left; a send takes [masked]"
    assert row.words == "The run's budget is used up. EUR: limit 100, reserved 0, spent 0, wanted [masked]."


def test_a_cost_that_cannot_be_read_closes_approval_and_says_why(people: Cast) -> None:
    make.policy(people.tenant, by=people.admin, tools={**make.TOOLS, make.REFUND: {"effect": "payment"}})
    opened(people, EUR=Decimal(100))
    attempt = refund(people, args={"amount": "much", "currency": "EUR", "customer": "c"})
    priced(people)
    assert isinstance(make.ask_leave(people.key, attempt), LeaveRefused)
    page = page_of(people.approver, attempt)
    (_, why) = action(page, DecisionKind.APPROVE).why_disabled
    assert why.startswith("its cost cannot be read: /amount is no amount: plain digits")
    assert "much" not in why
    assert "; a send takes what cannot be read: /amount is no amount" in budget(people, attempt).now
