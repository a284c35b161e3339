"""Budgets of money over the wire: what is reserved, spent, refused, and what is never read wrongly."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from functools import partial
from typing import Any

import httpx
import pytest

from ledger.models import Attempt, BudgetAccount, Event
from tests.ledger.ingest.cast import POLICY, Cast, stored
from tests.ledger.ingest.steps import (
    fail_without_effect,
    hash_of,
    new_attempt,
    post_dispatch,
    post_intent,
    post_outcome,
    sent_attempt,
)
from tests.support.api import Api, at_once, slug_of

COST = {"amount": "/amount", "unit": "/currency"}
CARD = {"effect": "payment", "cost": COST}


@pytest.fixture(autouse=True)
def priced(cast: Cast) -> None:
    """Payments by card cost what their arguments say."""
    publish(cast, CARD)


def publish(cast: Cast, rule: dict[str, Any]) -> None:
    cast.publish({**POLICY, "tools": {**POLICY["tools"], "pay.card": rule}})


def paying(amount: object, currency: object = "EUR", *, number: int = 1, run: str = "r1") -> dict[str, Any]:
    """An intent that pays this much."""
    args = {"amount": amount, "currency": currency, "number": number}
    return {"tool": "pay.card", "args": args, "operation_key": f"pay:{number}", "run": run}


def budget(api: Api, unit: str, run: str = "r1") -> dict[str, Any]:
    line: dict[str, Any] = api.get(f"/runs/{run}").json()["budget"][unit]
    return line


def test_leave_reserves_the_amount_and_the_report_spends_the_actual(api: Api) -> None:
    opened = api.put("/runs/r1", limits={"tool_calls": 20, "eur": "500.00"})
    assert opened.json()["budget"]["EUR"] == {
        "limit": "500.00",
        "reserved": "0",
        "spent": "0",
        "left": "500.00",
    }
    attempt = sent_attempt(api, **paying(120.5))
    assert budget(api, "EUR") == {"limit": "500.00", "reserved": "120.5", "spent": "0", "left": "379.50"}
    post_outcome(api, attempt, result_ref="x", usage={"eur": "119.99"})
    line = budget(api, "EUR")
    assert (line["reserved"], line["spent"], line["left"]) == ("0", "119.99", "380.01")
    assert budget(api, "tool_calls") == {"limit": 20, "reserved": 0, "spent": 1, "left": 19}


def test_without_an_actual_what_was_reserved_is_spent(api: Api) -> None:
    api.put("/runs/r1", limits={"EUR": 500})
    post_outcome(api, sent_attempt(api, **paying("120.50")), result_ref="x")
    assert budget(api, "EUR")["spent"] == "120.50"


def test_no_effect_gives_back_and_the_next_send_reserves_once(api: Api) -> None:
    api.put("/runs/r1", limits={"EUR": 500})
    attempt = sent_attempt(api, **paying(400))
    fail_without_effect(api, attempt, retryable=True)
    assert budget(api, "EUR")["left"] == "500"
    Attempt.objects.update(send_again_at=None)
    again = post_dispatch(api, attempt, leave_id="l2")
    assert (again.status_code, again.json()["attempt"]) == (200, 2)
    line = budget(api, "EUR")
    assert (line["reserved"], line["spent"], line["left"]) == ("400", "0", "100")


def test_the_refusal_says_which_limit_and_how_far(api: Api) -> None:
    api.put("/runs/r1", limits={"EUR": "500.00"})
    post_outcome(api, sent_attempt(api, **paying("300.00")), result_ref="x")
    sent_attempt(api, **paying("120.00", number=2))
    refused = post_dispatch(api, new_attempt(api, **paying("80.01", number=3)))
    words = "EUR: limit 500.00, reserved 120.00, spent 300.00, wanted 80.01"
    assert (refused.status_code, slug_of(refused)) == (403, "budget-exhausted")
    assert (refused.json()["reasons"], refused.json()["because"]) == (["budget-exhausted"], [words])
    assert words in refused.json()["detail"]
    event = Event.objects.get(kind="attempt.leave_refused", attempt_id=refused.json()["attempt_id"])
    said = {"reasons": ["budget-exhausted"], "words": ["The run's budget is used up."]}
    assert event.data == {**said, "because": [words]}
    assert post_dispatch(api, new_attempt(api, **paying(80, number=4))).status_code == 200


def test_a_masked_amount_is_in_no_refusal(api: Api, cast: Cast) -> None:
    publish(cast, {**CARD, "mask": ["/amount"]})
    api.put("/runs/r1", limits={"EUR": 5})
    refused = post_dispatch(api, new_attempt(api, **paying(77_712_345)))
    assert refused.json()["because"] == ["EUR: limit 5, reserved 0, spent 0, wanted [masked]"]
    assert "77712345" not in refused.text


def test_an_actual_beyond_the_limit_is_an_overrun_and_ends_leave(api: Api, cast: Cast) -> None:
    api.put("/runs/r1", limits={"EUR": 100})
    attempt = sent_attempt(api, **paying(100))
    waiting = new_attempt(api, tool="note.add", operation_key="note", args={}, run="r1")
    post_outcome(api, attempt, result_ref="x", usage={"EUR": "100.00000001"})
    assert Event.objects.get(tenant=cast.tenant, kind="budget.overrun").data == {"units": ["EUR"]}
    refused = post_dispatch(api, waiting)
    assert refused.json()["because"] == ["EUR: limit 100, reserved 0, spent 100.00000001, wanted 0"]
    assert (refused.status_code, slug_of(refused)) == (403, "budget-exhausted")
    assert budget(api, "EUR")["left"] == "0"


OTHER_UNITS = ["USD", "EURO", "eur0", "CREDITS"]


@pytest.mark.parametrize("unit", OTHER_UNITS)
def test_another_unit_never_slips_past_a_limit_of_money(api: Api, unit: str) -> None:
    api.put("/runs/r1", limits={"EUR": 500})
    refused = post_dispatch(api, new_attempt(api, **paying(1, unit)))
    assert (refused.status_code, slug_of(refused)) == (403, "budget-exhausted")
    assert refused.json()["because"] == [f"{unit.upper()}: limit 0, reserved 0, spent 0, wanted 1"]


def test_another_spelling_is_the_same_unit(api: Api) -> None:
    api.put("/runs/r1", limits={"Eur": 100})
    sent_attempt(api, **paying(60, "eUR"))
    assert post_dispatch(api, new_attempt(api, **paying(60, "EUR", number=2))).status_code == 403
    assert sorted(api.get("/runs/r1").json()["budget"]) == ["EUR", "tokens", "tool_calls", "turns"]


def test_a_unit_named_without_a_limit_is_counted(api: Api) -> None:
    api.put("/runs/r1", limits={"EUR": 500, "USD": None})
    sent_attempt(api, **paying(10_000, "usd"))
    assert budget(api, "USD") == {"limit": None, "reserved": "10000", "spent": "0", "left": None}


def test_a_run_that_limits_no_money_counts_it(api: Api) -> None:
    sent_attempt(api, **paying("0.1", "usd"))
    sent_attempt(api, **paying("0.2", "USD", number=2))
    assert budget(api, "USD") == {"limit": None, "reserved": "0.3", "spent": "0", "left": None}


def test_an_amount_without_a_unit_has_a_unit_of_its_own(api: Api, cast: Cast) -> None:
    publish(cast, {"effect": "payment", "cost": "/amount"})
    api.put("/runs/r1", limits={"amount": 5})
    assert post_dispatch(api, new_attempt(api, **paying(6))).status_code == 403
    sent_attempt(api, **paying(5, number=2))
    api.put("/runs/r2", limits={"EUR": 500})
    assert post_dispatch(api, new_attempt(api, **paying(1, number=3, run="r2"))).status_code == 403


def test_no_resume_and_no_report_of_another_unit_changes_what_is_limited(api: Api) -> None:
    limits = {"EUR": "500.00", "tool_calls": 9}
    api.put("/runs/r1", limits=limits)
    sent_attempt(api, **paying(450))
    api.post("/runs/r1/usage", usage_id="u1", usage={"GBP": "0.00"})
    for other in ({"EUR": 500.01}, {"USD": 5}, {"GBP": None}, {**limits, "GBP": 1}, {**limits, "GBP": None}):
        answer = api.put("/runs/r1", limits=other)
        assert (answer.status_code, slug_of(answer)) == (409, "run-limits-fixed"), other
    for same in (limits, {**limits, "EUR": 500}, {"eur": "500.0", "tool_calls": 9}, {}):
        assert api.put("/runs/r1", limits=same).status_code == 200, same
    assert budget(api, "EUR")["left"] == "50.00"


def test_usage_in_a_unit_the_run_did_not_name_is_counted_and_ends_leave(api: Api) -> None:
    api.put("/runs/r1", limits={"EUR": 500})
    assert api.post("/runs/r1/usage", usage_id="u1", usage={"gbp": "0.01"}).status_code == 200
    assert budget(api, "GBP") == {"limit": "0", "reserved": "0", "spent": "0.01", "left": "0"}
    refused = post_dispatch(api, new_attempt(api, **paying(1)))
    assert refused.json()["because"] == ["GBP: limit 0, reserved 0, spent 0.01, wanted 0"]
    assert api.put("/runs/r1", limits={"EUR": 500}).status_code == 200


def test_usage_of_money_is_counted_once(api: Api) -> None:
    api.put("/runs/r1", limits={"EUR": 5})
    for amount, status in (("1.10", 200), ("1.1", 200), ("1.11", 409)):
        answer = api.post("/runs/r1/usage", usage_id="u1", usage={"eur": amount})
        assert answer.status_code == status
    assert budget(api, "EUR")["left"] == "3.90"


def test_what_else_an_outcome_used_is_counted_beside_its_cost(api: Api) -> None:
    attempt = sent_attempt(api, **paying(10))
    post_outcome(api, attempt, result_ref="x", usage={"EUR": 11, "USD": "0.03", "tokens": 7})
    spent = {unit: line["spent"] for unit, line in api.get("/runs/r1").json()["budget"].items()}
    assert spent == {"EUR": "11", "USD": "0.03", "tokens": 7, "tool_calls": 1, "turns": 0}


UNREADABLE = {
    "missing": {"currency": "EUR"},
    "null": {"amount": None, "currency": "EUR"},
    "negative": {"amount": -5, "currency": "EUR"},
    "negative text": {"amount": "-5", "currency": "EUR"},
    "a sign": {"amount": "+5", "currency": "EUR"},
    "an exponent in text": {"amount": "1e2", "currency": "EUR"},
    "separators": {"amount": "1,000.00", "currency": "EUR"},
    "a comma": {"amount": "10,50", "currency": "EUR"},
    "spaces": {"amount": " 10", "currency": "EUR"},
    "leading zeros": {"amount": "010", "currency": "EUR"},
    "other digits": {"amount": "١٠", "currency": "EUR"},
    "with its unit": {"amount": "10 EUR", "currency": "EUR"},
    "infinity": {"amount": "Infinity", "currency": "EUR"},
    "empty": {"amount": "", "currency": "EUR"},
    "a flag": {"amount": True, "currency": "EUR"},
    "an object": {"amount": {"value": 5}, "currency": "EUR"},
    "a list": {"amount": [5], "currency": "EUR"},
    "nine decimals": {"amount": "0.000000001", "currency": "EUR"},
    "too large": {"amount": "1000000000000000", "currency": "EUR"},
    "no unit": {"amount": 5},
    "an empty unit": {"amount": 5, "currency": ""},
    "a sign for a unit": {"amount": 5, "currency": "€"},
    "a unit in words": {"amount": 5, "currency": "US Dollar"},
    "a unit of other letters": {"amount": 5, "currency": "ЕUR"},  # a Cyrillic letter
    "a number for a unit": {"amount": 5, "currency": 978},
    "a unit the ledger counts": {"amount": 5, "currency": "tokens"},
    "the same in other letters": {"amount": 5, "currency": "Tool_Calls"},
}


@pytest.mark.parametrize("args", UNREADABLE.values(), ids=UNREADABLE)
def test_a_cost_that_cannot_be_read_exactly_is_not_stored(api: Api, args: dict[str, Any]) -> None:
    before = stored()
    refused = post_intent(api, tool="pay.card", args=args, run="r1")
    assert (refused.status_code, slug_of(refused)) == (422, "cost-unreadable")
    assert stored() == before


READABLE = {
    "a number": (b"120", "120"),
    "decimals": (b"10.50", "10.5"),
    "an exponent": (b"1e2", "100"),
    "a small exponent": (b"1e-8", "0.00000001"),
    "text": (b'"10.50"', "10.50"),
    "the largest": (b'"999999999999999.99999999"', "999999999999999.99999999"),
    "what floats cannot add": (b"0.1", "0.1"),
}


@pytest.mark.parametrize(("written", "reserved"), READABLE.values(), ids=READABLE)
def test_a_cost_is_reserved_exactly_as_written(api: Api, written: bytes, reserved: str) -> None:
    args = b'{"amount": %s, "currency": "EUR"}' % written
    body = b'{"operation_key": "k", "tool": "pay.card", "run": "r1", "args": %s}' % args
    attempt = api.post_bytes("/intents", body).json()
    assert post_dispatch(api, attempt).status_code == 200
    assert budget(api, "EUR")["reserved"] == reserved


def test_nothing_costs_nothing(api: Api) -> None:
    api.put("/runs/r1", limits={"EUR": 0})
    post_outcome(api, sent_attempt(api, **paying(0)), result_ref="x")
    assert budget(api, "EUR")["left"] == "0"


def test_a_hash_only_intent_must_say_what_it_costs(api: Api) -> None:
    body = {"operation_key": "k", "tool": "pay.card", "args_hash": hash_of({})}
    refused = api.post("/intents", **body, run="r1")
    assert (refused.status_code, slug_of(refused)) == (422, "args-required")
    assert api.post("/intents", **body).status_code == 201  # no run pays for it


def test_without_a_run_nothing_is_limited(api: Api) -> None:
    for number, amount in enumerate((10**9, "not an amount")):
        sent_attempt(api, **{**paying(amount, number=number), "run": None})


def test_a_rule_that_takes_a_cost_later_holds_what_does_not_say_it(api: Api, cast: Cast) -> None:
    publish(cast, {"effect": "payment"})
    unclear, clear = new_attempt(api, **paying("much")), new_attempt(api, **paying(7, number=2))
    publish(cast, CARD)
    refused = post_dispatch(api, unclear)
    assert (refused.status_code, slug_of(refused)) == (409, "on-hold")
    assert Attempt.objects.get(pk=unclear["attempt_id"]).reason == "policy_changed"
    assert post_dispatch(api, clear).status_code == 200
    assert budget(api, "EUR")["reserved"] == "7"


HOSTILE = {
    "below zero": {"EUR": -1},
    "a text that is none": {"EUR": "5 EUR"},
    "an exponent": {"EUR": "5e2"},
    "a flag": {"EUR": True},
    "an object": {"EUR": {"limit": 5}},
    "a sign": {"€": 5},
    "twice": {"EUR": 5, "eur": 6},
    "a counted unit otherwise spelled": {"Tokens": 5},
    "too many": {f"U{number}": 1 for number in range(17)},
    "a long name": {"U" * 33: 1},
}


@pytest.mark.parametrize("amounts", HOSTILE.values(), ids=HOSTILE)
def test_hostile_amounts_are_neither_limits_nor_usage(api: Api, amounts: dict[str, Any]) -> None:
    calls = [("/runs/r1", "limits"), ("/runs/r2/usage", "usage")]
    api.put("/runs/r2")
    answers = [
        api.put(calls[0][0], limits=amounts),
        api.post(calls[1][0], usage_id="u1", usage=amounts),
    ]
    for answer, (_, field) in zip(answers, calls, strict=True):
        assert (answer.status_code, slug_of(answer)) == (422, "invalid-request")
        assert answer.json()["detail"].startswith(f"/{field}")
    assert api.get("/runs/r1").status_code == 404
    assert sorted(api.get("/runs/r2").json()["budget"]) == ["tokens", "tool_calls", "turns"]


def test_the_last_of_the_money_goes_to_exactly_one(api: Api) -> None:
    api.put("/runs/r1", limits={"EUR": "100.00"})
    attempts = [new_attempt(api, **paying("50.01", number=number)) for number in range(8)]
    answers: list[httpx.Response] = at_once([partial(post_dispatch, api, attempt) for attempt in attempts])
    assert Counter(answer.status_code for answer in answers) == {200: 1, 403: 7}
    assert budget(api, "EUR")["reserved"] == "50.01"


def test_usage_of_a_new_unit_by_many_at_once_is_all_counted(api: Api) -> None:
    api.put("/runs/r1")
    posts = [
        partial(api.post, "/runs/r1/usage", usage_id=f"u{number}", usage={"USD": "0.01"})
        for number in range(10)
    ]
    assert {answer.status_code for answer in at_once(posts)} == {200}
    assert budget(api, "USD")["spent"] == "0.10"


def test_a_unit_met_by_many_at_once_has_one_account(api: Api, cast: Cast) -> None:
    attempts = [new_attempt(api, **paying("0.1", "usd", number=number)) for number in range(8)]
    answers = at_once([partial(post_dispatch, api, attempt) for attempt in attempts])
    assert {answer.status_code for answer in answers} == {200}
    account = BudgetAccount.objects.get(tenant=cast.tenant, unit="USD")
    assert account.reserved == Decimal("0.8")
