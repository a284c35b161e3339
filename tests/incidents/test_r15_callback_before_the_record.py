"""R15: Provider callback arrives before the local record exists.

Kind: a fact that is early is kept and applied once; it is never acknowledged and dropped.

The scenario ends in an applied outcome. domain.md wins on its state: whoever reports a send that nobody had
leave for is `sent_without_leave`, and a person decides; only after leave does the receipt confirm.
"""

# ruff: noqa: F401, F811 - fixtures

from __future__ import annotations

from datetime import datetime

from ledger.models import Event, ParkedFact
from ledger.queries.invariants import findings
from ledger.queries.parked import recorded_after_send
from review.queries.parked import parked_page
from review.roles import Role
from tests.ledger.ingest.cast import Cast
from tests.ledger.ingest.conftest import (
    api,
    cast,
    contract,
    own_database,
    own_database_url,
    same_database,
    server,
)
from tests.ledger.ingest.steps import post_dispatch, post_intent, sent_attempt
from tests.support.api import Api, slug_of
from tests.support.cast import person

EARLIER = "2026-08-11T09:30:00+00:00"


def callback(api: Api, **said: str) -> int:
    """CONFIRMED(ref=p-1, correlation=k1), with its own occurred-at."""
    body = {"operation_key": "k1", "worker_id": "hook", "outcome": "succeeded", "result_ref": "p-1"}
    return api.post("/outcomes", **body, occurred_at=EARLIER, **said).status_code


def told(cast: Cast) -> list[Event]:
    return list(Event.objects.filter(tenant=cast.tenant).order_by("sequence"))


def test_before_the_intent(api: Api, cast: Cast) -> None:
    assert callback(api) == 202
    intent = post_intent(api, operation_key="k1")
    assert (intent.status_code, intent.json()["reason"]) == (202, "sent_without_leave")
    assert slug_of(post_dispatch(api, intent.json())) == "on-hold"
    history = told(cast)
    assert [event.kind for event in history] == [
        "attempt.intent", "attempt.outcome_reported", "attempt.manual_review",
    ]  # fmt: skip
    report = history[1]
    assert report.data["occurred_at"] == EARLIER
    assert datetime.fromisoformat(report.data["parked"]["since"]) < history[0].at
    assert callback(api) == 200
    assert len(told(cast)) == len(history)
    assert recorded_after_send() >= 1


def test_before_leave(api: Api, cast: Cast) -> None:
    attempt = post_intent(api, operation_key="k1").json()
    assert callback(api) == 200
    assert slug_of(post_dispatch(api, attempt)) == "on-hold"


def test_after_leave_it_confirms(api: Api, cast: Cast) -> None:
    attempt = sent_attempt(api, operation_key="k1")
    assert callback(api, args_hash=attempt["args_hash"]) == 200
    assert told(cast)[-1].kind == "operation.settled"


def test_the_hash_is_compared(api: Api, cast: Cast) -> None:
    sent_attempt(api, operation_key="k1")
    assert callback(api, args_hash="v1:sha256:" + "0" * 64) == 200
    assert told(cast)[-1].data["reason"] == "hash_mismatch"


def test_what_never_matches_is_listed_for_people(api: Api, cast: Cast) -> None:
    olga = person(f"olga-{cast.tenant.slug}", cast.tenant, Role.OPERATOR)
    assert callback(api) == 202
    (row,) = parked_page(olga).rows
    assert (row.operation_key, row.agent, row.times_told) == ("k1", "robot", 1)
    post_intent(api, operation_key="k1")
    assert parked_page(olga).rows == ()
    assert not ParkedFact.objects.filter(tenant=cast.tenant, joined_at=None).exists()
    assert list(findings(cast.tenant)) == []
