"""R28: Completed, in progress, queued: arrival in reverse order.

Kind: order of arrival is never trusted, and no attempt is made up from a report.

The scenario ends OUTCOME_CONFIRMED. domain.md wins: what was sent before its intent had no leave, so it is
`sent_without_leave` and a person confirms it (here with the reference that was reported). The history shows
the real order, and the broken guarantee is counted.
"""

# ruff: noqa: F401, F811 - fixtures

from __future__ import annotations

from ledger.models import Attempt, Event, Operation, ReviewItem
from ledger.queries.invariants import findings
from ledger.queries.parked import recorded_after_send
from review import decisions
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
from tests.ledger.ingest.steps import hash_of, post_dispatch, post_intent
from tests.support.api import Api, slug_of
from tests.support.cast import person

LOST = "att_" + "7" * 26


def test_the_queue_flushed_backwards(api: Api, cast: Cast) -> None:
    olga = person(f"olga-{cast.tenant.slug}", cast.tenant, Role.OPERATOR)
    counted = recorded_after_send()
    confirmed = {"worker_id": "w1", "outcome": "succeeded", "provider_request_id": "p-1"}
    dispatched = {"worker_id": "w1", "provider_request_id": "p-1"}
    assert api.post(f"/attempts/{LOST}/outcome", operation_key="k1", **confirmed).status_code == 202
    assert api.post(f"/attempts/{LOST}/provider-request", operation_key="k1", **dispatched).status_code == 202
    leave = api.post(f"/attempts/{LOST}/dispatch", worker_id="w1", args_hash=hash_of({}))
    assert slug_of(leave) == "not-found"
    assert not Operation.objects.filter(tenant=cast.tenant).exists()

    intent = post_intent(api, operation_key="k1")
    attempt = Attempt.objects.get(pk=intent.json()["attempt_id"])
    assert (attempt.state, attempt.reason) == ("MANUAL_REVIEW", "sent_without_leave")
    assert attempt.provider_request_id == "p-1"
    history = Event.objects.filter(tenant=cast.tenant).order_by("sequence")
    assert list(history.values_list("kind", flat=True)) == [
        "attempt.intent", "attempt.outcome_reported", "attempt.manual_review", "attempt.provider_request",
    ]  # fmt: skip
    assert recorded_after_send() == counted + 1
    assert slug_of(post_dispatch(api, intent.json())) == "on-hold"

    item = ReviewItem.objects.get(attempt=attempt)
    decisions.confirm_happened(olga, item.pk, why="the provider has it", reference="p-1")
    attempt.refresh_from_db()
    assert (attempt.state, attempt.confirmed_by) == ("OUTCOME_CONFIRMED", "operator")
    assert list(findings(cast.tenant)) == []
