"""The contract of leave, heartbeat, provider-request, outcome and recover."""

from __future__ import annotations

from datetime import datetime

import pytest

from ledger.models import Attempt, Event
from ledger.transactions import database_clock
from tests.ledger.ingest.cast import POLICY, Cast
from tests.ledger.ingest.steps import (
    ARGS,
    STANDING,
    fail_without_effect,
    hash_of,
    new_attempt,
    post_dispatch,
    post_intent,
    post_outcome,
    sent_attempt,
)
from tests.support.api import Api, slug_of

LEAVE = STANDING | {"idempotency_key", "correlation_id", "args", "lease_until", "lease_epoch"}


def test_leave_carries_all_that_is_to_be_sent(api: Api) -> None:
    attempt = new_attempt(api)
    answer = post_dispatch(api, attempt)
    assert answer.status_code == 200
    body = answer.json()
    assert set(body) == LEAVE
    assert (body["attempt_id"], body["state"], body["directive"]) == (
        attempt["attempt_id"], "DISPATCHED", "in_flight",
    )  # fmt: skip
    assert (body["args"], body["args_hash"], body["lease_epoch"]) == (ARGS, hash_of(ARGS), 1)
    assert body["idempotency_key"]
    assert body["correlation_id"]
    assert datetime.fromisoformat(body["lease_until"]) > database_clock()


def test_the_same_life_gets_the_same_leave_again(api: Api) -> None:
    attempt = new_attempt(api)
    first, again = post_dispatch(api, attempt), post_dispatch(api, attempt)
    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (200, "true")
    assert again.json() == first.json()
    assert "Idempotent-Replayed" not in first.headers


def test_the_worker_stands_in_for_the_leave_id(api: Api) -> None:
    attempt = new_attempt(api)
    path = f"/attempts/{attempt['attempt_id']}/dispatch"
    answers = [api.post(path, worker_id="w1", args_hash=attempt["args_hash"]) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]


@pytest.mark.parametrize("other", [{"worker_id": "w2"}, {"leave_id": "l2"}])
def test_another_life_gets_no_leave(api: Api, other: dict[str, str]) -> None:
    attempt = sent_attempt(api)
    answer = post_dispatch(api, attempt, **other)
    assert (answer.status_code, slug_of(answer)) == (409, "in-flight")
    assert answer.json()["retryable"] is True
    assert int(answer.headers["Retry-After"]) > 0


def test_a_held_attempt_gets_no_leave(api: Api) -> None:
    attempt = new_attempt(api, tool="pay.held")
    answer = post_dispatch(api, attempt)
    assert (answer.status_code, slug_of(answer)) == (409, "on-hold")
    assert answer.json()["review_url"] == attempt["review_url"]


def test_what_is_done_gets_no_leave(api: Api) -> None:
    attempt = sent_attempt(api)
    post_outcome(api, attempt, result_ref="r-1")
    answer = post_dispatch(api, attempt)
    assert (answer.status_code, slug_of(answer)) == (409, "already-done")
    assert answer.json()["result_ref"] == "r-1"


def test_other_arguments_get_the_stored_ones_for_an_answer(api: Api) -> None:
    answer = post_dispatch(api, new_attempt(api), args_hash=hash_of({}))
    assert (answer.status_code, slug_of(answer)) == (409, "args-changed")
    assert (answer.json()["args"], answer.json()["args_hash"]) == (ARGS, hash_of(ARGS))


def test_what_the_ledger_executes_gets_no_leave(api: Api) -> None:
    attempt = new_attempt(api, tool="own.send")
    assert attempt["directive"] == "in_flight"
    answer = post_dispatch(api, attempt)
    assert (answer.status_code, slug_of(answer)) == (409, "ledger-executes")


def test_a_closed_attempt_gets_no_leave(api: Api) -> None:
    attempt = sent_attempt(api)
    fail_without_effect(api, attempt, retryable=False)
    answer = post_dispatch(api, attempt)
    assert (answer.status_code, slug_of(answer)) == (409, "illegal-transition")


def test_leave_lists_every_reason_and_leads_with_the_first(api: Api, cast: Cast) -> None:
    attempt = new_attempt(api)
    cast.agent.is_active = False
    cast.agent.save()
    cast.tenant.suspended_at = database_clock()
    cast.tenant.save()
    answer = post_dispatch(api, attempt)
    assert (answer.status_code, slug_of(answer)) == (403, "tenant-suspended")
    assert answer.json()["reasons"] == ["tenant-suspended", "agent-inactive"]
    assert answer.json()["attempt_id"] == attempt["attempt_id"]
    assert Attempt.objects.get(pk=attempt["attempt_id"]).state == "INTENT_RECORDED"


def test_a_policy_that_refuses_the_tool_refuses_leave(api: Api, cast: Cast) -> None:
    attempt = new_attempt(api)
    cast.publish({**POLICY, "tools": {}})
    answer = post_dispatch(api, attempt)
    assert (answer.status_code, slug_of(answer)) == (403, "policy-refused")


def test_a_run_without_budget_refuses_leave(api: Api) -> None:
    api.put("/runs/small", limits={"tool_calls": 0})
    answer = post_dispatch(api, new_attempt(api, run="small"))
    assert (answer.status_code, slug_of(answer)) == (403, "budget-exhausted")


def test_a_retryable_failure_waits_out_its_back_off(api: Api) -> None:
    attempt = sent_attempt(api)
    failed = fail_without_effect(api, attempt, retryable=True)
    assert (failed.json()["state"], failed.json()["directive"]) == ("FAILED_RETRYABLE", "in_flight")
    assert int(failed.headers["Retry-After"]) > 0
    answer = post_dispatch(api, attempt, leave_id="l2")
    assert (answer.status_code, slug_of(answer)) == (409, "in-flight")


def test_a_heartbeat_lengthens_the_lease(api: Api) -> None:
    leave = sent_attempt(api)
    answer = api.post(f"/attempts/{leave['attempt_id']}/heartbeat", worker_id="w1", lease_epoch=1)
    assert answer.status_code == 200
    assert answer.json()["lease_until"] >= leave["lease_until"]


@pytest.mark.parametrize("wrong", [{"worker_id": "w2"}, {"lease_epoch": 2}, {"lease_epoch": 0}])
def test_another_lease_is_not_lengthened(api: Api, wrong: dict[str, object]) -> None:
    leave = sent_attempt(api)
    body = {"worker_id": "w1", "lease_epoch": 1, **wrong}
    answer = api.post(f"/attempts/{leave['attempt_id']}/heartbeat", **body)
    assert (answer.status_code, slug_of(answer)) == (409, "stale-lease")


def test_a_provider_request_id_is_kept(api: Api) -> None:
    leave = sent_attempt(api)
    path = f"/attempts/{leave['attempt_id']}/provider-request"
    answers = [api.post(path, worker_id="w1", provider_request_id="pr-1") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert ["Idempotent-Replayed" in answer.headers for answer in answers] == [False, True]
    assert set(answers[0].json()) == STANDING
    assert Attempt.objects.get(pk=leave["attempt_id"]).provider_request_id == "pr-1"


def test_a_receipt_confirms(api: Api) -> None:
    leave = sent_attempt(api)
    answers = [post_outcome(api, leave, result_ref="r-1") for _ in range(2)]
    body = answers[0].json()
    assert answers[0].status_code == 200
    assert set(body) == STANDING | {"evidence_only"}
    assert (body["state"], body["outcome"], body["directive"], body["result_ref"], body["evidence_only"]) == (
        "OUTCOME_CONFIRMED", "confirmed", "done", "r-1", False,
    )  # fmt: skip
    assert answers[1].headers["Idempotent-Replayed"] == "true"
    assert answers[1].json()["state"] == "OUTCOME_CONFIRMED"


@pytest.mark.parametrize("said", [{"outcome": "unknown"}, {"outcome": "failed"}, {"outcome": "succeeded"}])
def test_what_proves_nothing_is_unknown(api: Api, said: dict[str, str]) -> None:
    body = post_outcome(api, sent_attempt(api), **said).json()
    assert (body["state"], body["outcome"]) == ("UNKNOWN", "open")
    assert body["directive"] in {"reconcile", "hold"}
    assert "/review/rev_" in body["review_url"]


def test_proof_of_no_effect_closes(api: Api) -> None:
    body = fail_without_effect(api, sent_attempt(api), retryable=False).json()
    assert (body["state"], body["outcome"], body["directive"]) == ("FAILED", "failed", "failed")


def test_a_long_message_loses_its_end_and_not_the_report(api: Api) -> None:
    leave = sent_attempt(api)
    answer = post_outcome(api, leave, "unknown", error={"class": "reset", "message": "x\n\x1b" * 20_000})
    assert answer.status_code == 200
    events = Event.objects.filter(attempt=leave["attempt_id"], kind="attempt.outcome_reported")
    assert len(events.get().data["message"]) == 4_000


def test_a_masked_value_is_hidden_before_a_message_loses_its_end(api: Api, cast: Cast) -> None:
    rule = {**POLICY["tools"]["email.*"], "mask": ["/to"]}
    cast.publish({**POLICY, "tools": {"email.*": rule}})
    leave = sent_attempt(api)
    message = f"{'x' * 3_995}{ARGS['to']} refused it"
    assert post_outcome(api, leave, "unknown", error={"class": "reset", "message": message}).is_success
    events = Event.objects.filter(attempt=leave["attempt_id"], kind="attempt.outcome_reported")
    assert events.get().data["message"] == "x" * 3_995 + "[mask"


def test_a_second_receipt_is_only_evidence(api: Api) -> None:
    leave = sent_attempt(api)
    post_outcome(api, leave, result_ref="r-1")
    answer = post_outcome(api, leave, result_ref="r-2")
    assert answer.status_code == 200
    assert (answer.json()["state"], answer.json()["evidence_only"]) == ("OUTCOME_CONFIRMED", True)


def test_a_dead_worker_loses_contact_with_what_it_was_sending(api: Api) -> None:
    lost, other = sent_attempt(api), sent_attempt(api, operation_key="invoice:2")
    post_outcome(api, other, result_ref="r-1")
    answer = api.post("/recover", worker_id="w1")
    assert answer.status_code == 200
    assert [(line["attempt_id"], line["state"]) for line in answer.json()["attempts"]] == [
        (lost["attempt_id"], "UNKNOWN")
    ]
    again = api.post("/recover", worker_id="w1").json()["attempts"]
    assert [line["attempt_id"] for line in again] == [lost["attempt_id"]]
    assert post_intent(api).json()["directive"] in {"reconcile", "hold"}
