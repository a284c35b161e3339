"""Many at once, on real connections: one wins, the others get the winner's answer."""

from __future__ import annotations

from collections import Counter
from functools import partial

from ledger.models import Attempt, BudgetAccount, Event, Operation
from tests.ledger.ingest.cast import Cast
from tests.ledger.ingest.steps import new_attempt, post_dispatch, post_intent, post_outcome, sent_attempt
from tests.support.api import Api, at_once, slug_of


def test_equal_intents_make_one_attempt(api: Api, cast: Cast) -> None:
    answers = at_once([lambda: post_intent(api)] * 20)
    assert Counter(answer.status_code for answer in answers) == {201: 1, 200: 19}
    assert len({answer.json()["attempt_id"] for answer in answers}) == 1
    assert Operation.objects.filter(tenant=cast.tenant).count() == 1


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


def test_one_life_gets_one_leave_however_often_it_asks(api: Api) -> None:
    attempt = new_attempt(api)
    answers = at_once([lambda: post_dispatch(api, attempt)] * 10)
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1
    assert Event.objects.filter(attempt=attempt["attempt_id"], kind="attempt.dispatched").count() == 1


def test_leave_and_report_at_once_leave_a_clear_state(api: Api) -> None:
    attempt = new_attempt(api)
    post_dispatch(api, attempt)
    answers = at_once(
        [lambda: post_dispatch(api, attempt)] * 5 + [lambda: post_outcome(api, attempt, result_ref="r")] * 5
    )
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert {slug_of(answer) for answer in answers if answer.status_code == 409} <= {"already-done"}
    assert Attempt.objects.get(pk=attempt["attempt_id"]).state == "OUTCOME_CONFIRMED"


def test_cancel_and_leave_at_once_never_both_win_unsent(api: Api) -> None:
    attempt = new_attempt(api)
    path = f"/operations/{attempt['operation_id']}/cancel"
    leave, cancelled = at_once([lambda: post_dispatch(api, attempt), lambda: api.post(path, reason="x")])
    assert cancelled.status_code == 200
    state = Attempt.objects.get(pk=attempt["attempt_id"]).state
    assert (leave.status_code, state) in {(200, "DISPATCHED"), (409, "CANCELLED"), (403, "CANCELLED")}


def test_a_budget_is_not_overdrawn(api: Api, cast: Cast) -> None:
    api.put("/runs/r1", limits={"tool_calls": 3})
    attempts = [new_attempt(api, operation_key=f"k{n}", run="r1", step=f"s{n}") for n in range(8)]
    answers = at_once([partial(post_dispatch, api, a) for a in attempts])
    assert Counter(answer.status_code for answer in answers) == {200: 3, 403: 5}
    assert {slug_of(answer) for answer in answers if answer.status_code == 403} == {"budget-exhausted"}
    account = BudgetAccount.objects.get(run__name="r1", tenant=cast.tenant, unit="tool_calls")
    assert (account.reserved, account.spent) == (3, 0)


def test_equal_usage_is_counted_once(api: Api) -> None:
    api.put("/runs/r1")
    answers = at_once([lambda: api.post("/runs/r1/usage", usage_id="u", usage={"turns": 2})] * 8)
    assert {answer.status_code for answer in answers} == {200}
    assert api.get("/runs/r1").json()["budget"]["turns"]["spent"] == 2


def test_a_dead_worker_is_declared_by_many(api: Api) -> None:
    attempt = sent_attempt(api)
    answers = at_once([lambda: api.post("/recover", worker_id="w1")] * 5)
    assert {answer.status_code for answer in answers} == {200}
    assert Event.objects.filter(attempt=attempt["attempt_id"], kind="attempt.unknown").count() == 1
