"""Facts about what this tenant does not know: kept, answered alike, and read as strictly as any other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from django.test import Client

from ledger.models import Attempt, Event, ParkedFact
from ledger.queries.parked import parked_now
from ledger.rules import parking
from ledger.rules.vocabulary import EventKind
from ledger.transactions import database_clock
from tests.ledger.ingest.cast import Cast, new_cast
from tests.ledger.ingest.steps import hash_of, new_attempt, post_dispatch, post_intent, sent_attempt
from tests.support.api import Api, slug_of

LOST = "att_" + "7" * 26


def tell(api: Api, key: str = "invoice:1", **said: Any) -> httpx.Response:
    body = {"operation_key": key, "worker_id": "w1", "outcome": "succeeded", "result_ref": "r-1", **said}
    return api.post("/outcomes", **{name: value for name, value in body.items() if value is not None})


def test_an_early_outcome_is_kept_and_repeated(api: Api, cast: Cast) -> None:
    first, again = tell(api), tell(api)
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json() == again.json()
    assert first.json()["parked"] is True
    assert ("idempotent-replayed" in first.headers, again.headers["idempotent-replayed"]) == (False, "true")
    assert ParkedFact.objects.get(tenant=cast.tenant).times_told == 2


def test_the_intent_that_comes_later_waits_for_a_person(api: Api) -> None:
    tell(api)
    answer = post_intent(api)
    assert answer.status_code == 202
    attempt = answer.json()
    assert (attempt["state"], attempt["directive"], attempt["reason"]) == (
        "MANUAL_REVIEW", "hold", "sent_without_leave",
    )  # fmt: skip
    assert slug_of(post_dispatch(api, attempt)) == "on-hold"
    told_again = tell(api)
    assert (told_again.status_code, told_again.headers["idempotent-replayed"]) == (200, "true")


def test_of_a_known_operation_the_state_that_followed_is_answered(api: Api) -> None:
    attempt = sent_attempt(api)
    answer = tell(api, args_hash=attempt["args_hash"], occurred_at="2026-08-11T09:30:00Z")
    assert answer.status_code == 200
    assert (answer.json()["attempt_id"], answer.json()["state"]) == (
        attempt["attempt_id"], "OUTCOME_CONFIRMED",
    )  # fmt: skip


def test_money_that_an_early_outcome_used_is_read_as_it_was_told(api: Api) -> None:
    used: dict[str, Any] = {"usage": {"EUR": "119.99", "tokens": 5}}
    assert tell(api, **used).status_code == 202
    early = post_intent(api)
    assert early.status_code == 202
    (report,) = Event.objects.filter(attempt=early.json()["attempt_id"], kind=EventKind.OUTCOME_REPORTED)
    assert report.data["usage"] == used["usage"]
    attempt = sent_attempt(api, operation_key="invoice:2")
    assert tell(api, "invoice:2", **used).json()["attempt_id"] == attempt["attempt_id"]


def test_a_lost_id_says_by_the_operations_key_what_it_is_about(api: Api) -> None:
    attempt = sent_attempt(api)
    said = {"worker_id": "w1", "outcome": "succeeded", "result_ref": "r-1"}
    answer = api.post(f"/attempts/{LOST}/outcome", operation_key="invoice:1", **said)
    assert answer.status_code == 202
    assert api.get(f"/operations/{attempt['operation_id']}").json()["outcome"] == "confirmed"


@pytest.mark.parametrize(
    "wrong",
    [
        {"operation_key": None},
        {"operation_key": ""},
        {"operation_key": "a\u202eb"},
        {"outcome": "perhaps"},
        {"args_hash": "sha256:1"},
        {"occurred_at": "yesterday"},
        {"no_effect": True},
        {"attempt_id": LOST},
    ],
    ids=str,
)
def test_what_is_malformed_is_never_kept(api: Api, cast: Cast, wrong: dict[str, Any]) -> None:
    assert slug_of(tell(api, **wrong)) == "invalid-request"
    said = {"worker_id": "w1", "outcome": "succeeded", "result_ref": "r-1", **wrong}
    if set(wrong) != {"operation_key"} or wrong["operation_key"] is not None:
        assert slug_of(api.post(f"/attempts/{LOST}/outcome", **said)) == "invalid-request"
    assert not ParkedFact.objects.filter(tenant=cast.tenant).exists()


def test_a_sign_of_life_is_no_fact(api: Api, cast: Cast) -> None:
    beat = api.post(f"/attempts/{LOST}/heartbeat", worker_id="w1", lease_epoch=1)
    leave = api.post(f"/attempts/{LOST}/dispatch", worker_id="w1", args_hash=hash_of({}))
    assert (slug_of(beat), slug_of(leave)) == ("not-found", "not-found")
    assert not ParkedFact.objects.filter(tenant=cast.tenant).exists()


def test_an_early_outcome_and_its_intent_at_once_never_miss_each_other(api: Api, cast: Cast) -> None:
    keys = [f"race:{number}" for number in range(12)]
    with ThreadPoolExecutor(4) as pool:
        for key in keys:
            calls = [
                pool.submit(post_intent, api, operation_key=key),
                pool.submit(tell, api, key),
                pool.submit(tell, api, key),
            ]
            assert {call.result().status_code for call in calls} <= {200, 201, 202}
    facts = ParkedFact.objects.filter(tenant=cast.tenant)
    assert facts.count() == facts.exclude(joined_at=None).count() == len(keys)
    states = Attempt.objects.filter(tenant=cast.tenant).values_list("state", "reason")
    assert set(states) == {("MANUAL_REVIEW", "sent_without_leave")}
    told = Event.objects.filter(tenant=cast.tenant, kind="attempt.outcome_reported")
    assert told.count() == len(keys)


def test_a_suspended_tenant_s_facts_are_kept(api: Api, cast: Cast) -> None:
    cast.tenant.suspended_at = database_clock()
    cast.tenant.save()
    assert tell(api).status_code == 202


@pytest.mark.django_db
def test_when_there_is_no_room_the_sender_is_told_to_come_back(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parking, "MOST_FACTS", 1)
    cast = new_cast()
    bearer = {"Authorization": f"Bearer {cast.key()[0]}"}
    answers = [
        client.post(
            "/api/v1/outcomes",
            {"operation_key": key, "worker_id": "w1", "outcome": "unknown"},
            content_type="application/json",
            headers=bearer,
        )
        for key in ("a", "b", "a")
    ]
    assert [answer.status_code for answer in answers] == [202, 429, 202]
    refused = answers[1]
    assert refused["Retry-After"] == "60"
    problem = refused.json()
    assert (problem["type"], problem["retryable"], problem["safe_to_dispatch"]) == (
        "/problems/parking-full", True, False,
    )  # fmt: skip
    assert parked_now(cast.tenant.pk).facts == 1


def test_a_known_attempt_is_reported_on_as_ever(api: Api, cast: Cast) -> None:
    attempt = new_attempt(api)
    post_dispatch(api, attempt)
    answer = api.post(
        f"/attempts/{attempt['attempt_id']}/outcome", worker_id="w1", outcome="succeeded", result_ref="r-1"
    )
    assert (answer.status_code, answer.json()["state"]) == (200, "OUTCOME_CONFIRMED")
    assert not ParkedFact.objects.filter(tenant=cast.tenant).exists()
