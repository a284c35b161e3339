"""Many at once, on real connections: one wins, the others get the winner's answer."""

from __future__ import annotations

from collections import Counter
from functools import partial

from ledger.models import Attempt, BudgetAccount
from tests.ledger.ingest.cast import Cast
from tests.ledger.ingest.steps import new_attempt, post_dispatch, post_intent, post_outcome
from tests.support.api import Api, at_once, slug_of


def test_of_many_contents_one_is_live_and_one_is_held(api: Api, cast: Cast) -> None:
    answers = at_once([partial(post_intent, api, args={"n": n}) for n in range(12)])
    assert Counter(answer.status_code for answer in answers) == {201: 1, 422: 11}
    states = Attempt.objects.filter(tenant=cast.tenant).order_by("number").values_list("state", flat=True)
    assert list(states) == ["INTENT_RECORDED", "MANUAL_REVIEW"]


def test_one_worker_of_many_gets_leave(api: Api) -> None:
    attempt = new_attempt(api)
    calls = [partial(post_dispatch, api, attempt, worker_id=f"w{n}") for n in range(10)]
    answers = at_once(calls)
    assert Counter(answer.status_code for answer in answers) == {200: 1, 409: 9}
    assert {slug_of(answer) for answer in answers if answer.status_code == 409} == {"in-flight"}


def test_leave_and_report_at_once_leave_a_clear_state(api: Api) -> None:
    attempt = new_attempt(api)
    post_dispatch(api, attempt)
    answers = at_once(
        [lambda: post_dispatch(api, attempt)] * 5 + [lambda: post_outcome(api, attempt, result_ref="r")] * 5
    )
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert {slug_of(answer) for answer in answers if answer.status_code == 409} <= {"already-done"}
    assert Attempt.objects.get(pk=attempt["attempt_id"]).state == "OUTCOME_CONFIRMED"


def test_a_budget_is_not_overdrawn(api: Api, cast: Cast) -> None:
    api.put("/runs/r1", limits={"tool_calls": 3})
    attempts = [new_attempt(api, operation_key=f"k{n}", run="r1", step=f"s{n}") for n in range(8)]
    answers = at_once([partial(post_dispatch, api, a) for a in attempts])
    assert Counter(answer.status_code for answer in answers) == {200: 3, 403: 5}
    assert {slug_of(answer) for answer in answers if answer.status_code == 403} == {"budget-exhausted"}
    account = BudgetAccount.objects.get(run__name="r1", tenant=cast.tenant, unit="tool_calls")
    assert (account.reserved, account.spent) == (3, 0)
