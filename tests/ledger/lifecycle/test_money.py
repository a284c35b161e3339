"""Money through the verbs: reserved by what is sent, spent by what happened, whoever found it out."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from ledger import lifecycle
from ledger.models import ApiKey, Attempt, BudgetAccount, BudgetEntry, Event
from ledger.queries.invariants import findings
from ledger.rules.amounts import Amount
from ledger.rules.looked_up import LookedUp, LookedUpKind, Record
from ledger.transactions import database_clock, durable
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db

PAY = "card.pay"
COST = {"amount": "/amount", "unit": "/currency"}
RULE: dict[str, Any] = {"effect": "payment", "approvals": 1, "cost": COST, "summary": "Pay {amount}"}
FOUND = Record(reference="ch_1", content="same", state="done")


@pytest.fixture
def people() -> Cast:
    found = cast()
    publish(found, RULE)
    limits = {"EUR": Decimal(100)}
    durable(lambda: lifecycle.open_run(key=found.key, name="r", limits=limits))
    return found


def publish(people: Cast, rule: dict[str, Any]) -> None:
    make.policy(people.tenant, by=people.admin, tools={PAY: rule})


def args(amount: object) -> dict[str, object]:
    return {"amount": amount, "currency": "EUR"}


def recorded(people: Cast, amount: object) -> Attempt:
    return make.recorded(people.key, PAY, args=args(amount), run="r")


def account() -> tuple[Amount, Amount]:
    found = BudgetAccount.objects.get(unit="EUR")
    assert list(findings()) == []
    return found.reserved, found.spent


def approve(people: Cast, attempt: Attempt) -> None:
    item = make.item_of(attempt).pk
    durable(lambda: lifecycle.approve(item_id=item, by=people.approver, why="owed"))


def test_a_look_up_that_finds_it_posts_what_the_agent_said_it_was(people: Cast) -> None:
    publish(people, {**RULE, "provider": "bank", "confirm": "lookup"})
    attempt = make.send(people.key, recorded(people, 60))
    usage = {"EUR": Decimal("59.99"), "USD": Decimal("0.30")}
    make.reported(people.key, attempt, "succeeded", result_ref="ch_1", usage=usage)
    assert account() == (60, 0)
    assert make.looked_up(attempt, LookedUpKind.FOUND, FOUND).state == "OUTCOME_CONFIRMED"
    assert account() == (0, Decimal("59.99"))
    assert BudgetAccount.objects.get(unit="USD").spent == Decimal("0.30")


def spent(unit: str) -> Amount:
    assert list(findings()) == []
    amount: Amount = BudgetAccount.objects.get(unit=unit).spent
    return amount


def test_each_unit_that_outcomes_name_is_counted_once(people: Cast) -> None:
    attempt = make.send(people.key, recorded(people, 60))
    make.reported(people.key, attempt, "unknown", usage={"tokens": 5})
    last = {"tokens": 5, "USD": Decimal("40.01")}
    for message in ("done", "done, as said"):
        make.reported(people.key, attempt, "succeeded", result_ref="ch_1", usage=last, message=message)
    assert (spent("tokens"), spent("USD"), account()) == (5, Decimal("40.01"), (0, 60))
    (told,) = Event.objects.filter(kind="budget.overrun")
    assert told.data["units"] == ["USD"], "the run limits money and names none of it"


def test_what_a_revoked_key_says_it_used_is_not_counted(people: Cast) -> None:
    """Whoever has a leaked key would else use up the run."""
    attempt = make.send(people.key, recorded(people, 60))
    ApiKey.objects.filter(pk=people.key.pk).update(revoked_at=database_clock())
    usage = {"tokens": 1_000_000, "USD": Decimal("0.30")}
    assert make.reported(people.key, attempt, "succeeded", result_ref="ch_1", usage=usage).state == "UNKNOWN"
    assert (spent("tokens"), BudgetAccount.objects.filter(unit="USD").exists()) == (0, False)
    other = make.key(people.agent)
    make.reported(other, attempt, "succeeded", result_ref="ch_1", usage={"tokens": 7})
    assert (spent("tokens"), account()) == (7, (0, 60))


def test_a_late_receipt_changes_no_account(people: Cast) -> None:
    publish(people, {**RULE, "provider": "bank"})
    attempt = make.reported(people.key, make.send(people.key, recorded(people, 60)), "unknown")
    make.looked_up(attempt, LookedUpKind.FOUND, FOUND)
    for _ in range(2):
        make.reported(people.key, attempt, "succeeded", result_ref="ch_1", usage={"EUR": Decimal(0)})
    assert account() == (0, 60)


def test_corrected_arguments_reserve_the_new_amount(people: Cast) -> None:
    publish(people, {**RULE, "review": "always"})
    attempt = recorded(people, 160)
    corrected = make.corrected(attempt, people.operator, args("16.50"))
    approve(people, corrected)
    make.send(people.key, make.fresh(corrected))
    assert account() == (Decimal("16.50"), 0)


def test_an_approved_new_send_after_a_doubt_is_counted_beside_the_first(people: Cast) -> None:
    doubtful = make.looked_up(
        make.reported(people.key, make.send(people.key, recorded(people, 40)), "unknown"),
        LookedUpKind.NO_LOOKUP,
    )
    approve(people, doubtful)
    again = make.send(people.key, make.fresh(doubtful))
    assert (again.number, account()) == (2, (40, 40))
    make.reported(people.key, again, "succeeded", result_ref="ch_2")
    assert account() == (0, 80)


def test_leave_asked_twice_by_one_life_reserves_once(people: Cast) -> None:
    attempt = recorded(people, 60)
    leave = lambda: lifecycle.give_leave(  # noqa: E731
        key=people.key, attempt_id=attempt.pk, worker_id="w", leave_id="l", args_hash=attempt.args_hash
    )
    given = [durable(leave) for _ in range(2)]
    assert [isinstance(answer, lifecycle.LeaveGiven) for answer in given] == [True, True]
    assert account() == (60, 0)


def test_a_resume_finds_the_account_as_it_was(people: Cast) -> None:
    attempt = make.send(people.key, recorded(people, 60))
    durable(lambda: lifecycle.declare_worker_dead(key=people.key, worker_id="worker-1"))
    durable(lambda: lifecycle.open_run(key=people.key, name="r", limits={"EUR": Decimal(100)}))
    again = make.posted(people.key, make.intent_of(PAY, args=args(50), run="r")).standing
    assert again is not None
    refused = make.ask_leave(people.key, again.attempt)
    assert isinstance(refused, lifecycle.LeaveRefused)
    assert refused.because == ("EUR: limit 100, reserved 60, spent 0, wanted 50",)
    assert (make.fresh(attempt).state, account()) == ("UNKNOWN", (60, 0))


def test_what_was_sent_without_leave_is_spent_when_it_is_confirmed(people: Cast) -> None:
    attempt = recorded(people, 60)
    make.reported(people.key, attempt, "succeeded", result_ref="ch_1", usage={"EUR": Decimal(61)})
    assert account() == (0, 0)
    item = make.item_of(attempt).pk
    for person in (people.operator, people.second_operator):
        durable(partial(lifecycle.confirm_happened, item_id=item, by=person, why="seen", reference="ch_1"))
    assert account() == (0, 61)


def test_a_rule_that_changes_its_cost_changes_nothing_that_was_sent(people: Cast) -> None:
    attempt = make.send(people.key, recorded(people, 60))
    publish(people, {**RULE, "cost": {"amount": "/elsewhere", "unit": "/currency"}})
    assert make.reported(people.key, attempt, "unknown").state == "UNKNOWN"
    make.reported(people.key, attempt, "succeeded", result_ref="ch_1")
    assert account() == (0, 60)


def test_proof_and_a_receipt_after_all_post_once(people: Cast) -> None:
    attempt = make.send(people.key, recorded(people, "33.33"))
    refused: dict[str, Any] = {"no_effect": True, "error_class": "refused", "retryable": True}
    make.reported(people.key, attempt, "failed", **refused)
    assert account() == (0, 0)
    make.reported(people.key, attempt, "succeeded", result_ref="ch_1")
    assert account() == (0, Decimal("33.33"))
    kinds = BudgetEntry.objects.filter(account__unit="EUR").order_by("pk").values_list("kind", flat=True)
    assert list(kinds) == ["RESERVE", "VOID", "POST"]


def test_an_approval_given_under_a_rule_that_costs_reserves_by_that_rule(people: Cast) -> None:
    publish(people, {"effect": "payment", "approvals": 1, "review": "always"})
    attempt = recorded(people, 60)
    publish(people, {**RULE, "review": "always"})
    approve(people, attempt)
    make.send(people.key, make.fresh(attempt))
    assert account() == (60, 0)


def test_an_amount_beyond_the_rest_sends_nothing_whoever_approved(people: Cast) -> None:
    publish(people, {**RULE, "review": "always"})
    attempt = recorded(people, 60)
    approve(people, attempt)
    usage = lambda: lifecycle.record_usage(  # noqa: E731
        key=people.key, name="r", usage_id="u", amounts={"EUR": Decimal("40.01")}
    )
    durable(usage)
    refused = make.ask_leave(people.key, make.fresh(attempt))
    assert isinstance(refused, lifecycle.LeaveRefused)
    assert refused.reasons == ("budget-exhausted",)
    assert make.fresh(attempt).approvals.get().used_at is None
    assert database_clock() < make.fresh(attempt).approvals.get().expires_at


def test_what_is_posted_together_is_posted_whole_when_a_unit_is_met_for_the_first_time(people: Cast) -> None:
    """The second was sent without leave, in a currency that its run has no account in yet."""
    publish(people, {**RULE, "provider": "bank"})
    first = make.reported(people.key, make.send(people.key, recorded(people, 60)), "unknown")
    other = make.recorded(people.key, PAY, args={"amount": 5, "currency": "USD"}, run="r")
    second = make.reported(people.key, other, "unknown")
    durable(partial(lifecycle.recheck, item_id=make.item_of(second).pk, by=people.operator, why="look"))
    looked_up = LookedUp(LookedUpKind.FOUND, (FOUND,))
    answers = [
        lifecycle.Answered(
            attempt_id=one.pk,
            operation_id=one.operation_id,
            asked=lifecycle.Asked(make.fresh(one).lookup_epoch, database_clock(), None),
            looked_up=looked_up,
        )
        for one in (first, second)
    ]
    assert durable(partial(lifecycle.confirm_plain, answers)) == {first.pk, second.pk}
    assert account() == (0, 60)
    assert spent("USD") == 5
