"""The contract of reading, listing and withdrawing operations."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.ledger.ingest.steps import (
    STANDING,
    hash_of,
    new_attempt,
    post_dispatch,
    post_intent,
    post_outcome,
    sent_attempt,
)
from tests.support.api import Api, slug_of


def keys_listed(api: Api, **query: str | int) -> list[str]:
    """The operation keys of a whole list, read page by page."""
    seen: list[str] = []
    while True:
        answer = api.get("/operations", **query)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        seen += [operation["operation_key"] for operation in page["operations"]]
        if page["next_cursor"] is None:
            return seen
        query["cursor"] = page["next_cursor"]


def test_an_operation_shows_its_attempts_oldest_first(api: Api) -> None:
    first = sent_attempt(api, run="r", step="s")
    post_intent(api, args={"to": "b"}, run="r", step="s")
    answer = api.get(f"/operations/{first['operation_id']}")
    assert answer.status_code == 200
    body = answer.json()
    assert set(body) > STANDING
    assert (body["attempt_id"], body["directive"]) == (first["attempt_id"], "in_flight")
    assert (body["operation_key"], body["tool"], body["run"], body["step"]) == (
        "invoice:1", "email.send", "r", "s",
    )  # fmt: skip
    assert [(line["attempt"], line["state"]) for line in body["attempts"]] == [
        (1, "DISPATCHED"), (2, "MANUAL_REVIEW"),
    ]  # fmt: skip
    assert body["deliveries"] == []


def test_a_confirmed_operation_shows_its_result(api: Api) -> None:
    first = sent_attempt(api)
    post_outcome(api, first, result_ref="r-1")
    body = api.get(f"/operations/{first['operation_id']}").json()
    assert (body["outcome"], body["directive"], body["result_ref"]) == ("confirmed", "done", "r-1")


@pytest.fixture
def three(api: Api) -> dict[str, dict[str, Any]]:
    """One sent, one held, one confirmed operation."""
    made = {
        "sent": sent_attempt(api, operation_key="sent", run="r1", args={"n": 1}),
        "held": new_attempt(api, operation_key="held", tool="pay.held", args={"n": 2}),
        "done": sent_attempt(api, operation_key="done", run="r2", args={"n": 3}),
    }
    post_outcome(api, made["done"], result_ref="x")
    return made


FILTERS: list[tuple[dict[str, str], list[str]]] = [
    ({}, ["done", "held", "sent"]),
    ({"operation_key": "held"}, ["held"]),
    ({"state": "DISPATCHED"}, ["sent"]),
    ({"outcome": "open"}, ["held", "sent"]),
    ({"outcome": "confirmed"}, ["done"]),
    ({"tool": "email.send"}, ["done", "sent"]),
    ({"run": "r1"}, ["sent"]),
    ({"args_hash": hash_of({"n": 3})}, ["done"]),
    ({"tool": "email.send", "outcome": "open"}, ["sent"]),
    ({"operation_key": "nothing"}, []),
]


@pytest.mark.parametrize(("filters", "expected"), FILTERS)
def test_every_filter_must_fit(
    api: Api, three: dict[str, Any], filters: dict[str, str], expected: list[str]
) -> None:
    assert keys_listed(api, **filters) == expected


def test_a_list_is_read_page_by_page_newest_first(api: Api) -> None:
    for number in range(5):
        new_attempt(api, operation_key=f"k{number}")
    assert keys_listed(api, limit=2) == ["k4", "k3", "k2", "k1", "k0"]


def test_a_cursor_is_good_for_its_own_list_only(api: Api, stranger: Api) -> None:
    for number in range(2):
        new_attempt(api, operation_key=f"k{number}")
    cursor = api.get("/operations", limit=1).json()["next_cursor"]
    assert api.get("/operations", limit=1, cursor=cursor).status_code == 200
    misused = [
        api.get("/operations", cursor=cursor, outcome="open"),
        stranger.get("/operations", cursor=cursor),
        api.get("/operations", cursor=cursor[:-1] + ("a" if cursor[-1] != "a" else "b")),
    ]
    assert {(answer.status_code, slug_of(answer)) for answer in misused} == {(422, "invalid-cursor")}


def test_the_history_is_read_in_order_and_chained(api: Api) -> None:
    attempt = sent_attempt(api)
    post_outcome(api, attempt, result_ref="r-1")
    path = f"/operations/{attempt['operation_id']}/events"
    whole = api.get(path).json()["events"]
    assert [event["sequence"] for event in whole] == list(range(1, len(whole) + 1))
    assert whole[0]["kind"] == "attempt.intent"
    assert (whole[0]["actor_kind"], whole[0]["attempt_id"]) == ("agent", attempt["attempt_id"])
    assert all(event["previous_hash"] == before["hash"] for before, event in pairwise(whole))
    pages, cursor = [], None
    while True:
        page = api.get(path, limit=2, **({"cursor": cursor} if cursor else {})).json()
        pages += page["events"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert pages == whole


def test_a_cursor_of_another_history_is_refused(api: Api) -> None:
    first, second = sent_attempt(api), sent_attempt(api, operation_key="k2")
    cursor = api.get(f"/operations/{first['operation_id']}/events", limit=1).json()["next_cursor"]
    answer = api.get(f"/operations/{second['operation_id']}/events", cursor=cursor)
    assert (answer.status_code, slug_of(answer)) == (422, "invalid-cursor")


def test_what_was_not_sent_is_cancelled_at_once(api: Api) -> None:
    attempt = new_attempt(api)
    path = f"/operations/{attempt['operation_id']}/cancel"
    answers = [api.post(path, reason="not wanted") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert ["Idempotent-Replayed" in answer.headers for answer in answers] == [False, True]
    body = answers[0].json()
    assert (body["state"], body["outcome"], body["directive"]) == ("CANCELLED", "cancelled", "failed")
    assert answers[1].json() == body
    refused = post_dispatch(api, attempt)
    assert (refused.status_code, slug_of(refused)) == (409, "illegal-transition")


def test_what_was_sent_is_not_undone(api: Api) -> None:
    attempt = sent_attempt(api)
    body = api.post(f"/operations/{attempt['operation_id']}/cancel", reason="no", worker_id="w1").json()
    assert (body["state"], body["outcome"], body["directive"]) == ("DISPATCHED", "open", "in_flight")
    assert api.get(f"/operations/{attempt['operation_id']}").json()["cancelled_at"] is not None


@pytest.mark.parametrize("reason", ["", "x" * 1001, "a\u202eb", None, 5])
def test_a_cancellation_needs_a_readable_reason(api: Api, reason: object) -> None:
    attempt = new_attempt(api)
    answer = api.post(f"/operations/{attempt['operation_id']}/cancel", reason=reason)
    assert (answer.status_code, slug_of(answer)) == (422, "invalid-request")
