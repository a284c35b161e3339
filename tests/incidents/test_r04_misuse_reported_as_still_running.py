"""R04: a reused key with another body is answered "still running", because checks run in the wrong order.

Kind: content compared after state. Whoever means other content is told so whatever the first is doing, at
every door; whoever means the same is told where it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from ledger.transactions import database_clock
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import ARGS, DEPLOY, PAYMENT, Body, Scene
from tests.ledger.ingest.steps import hash_of
from tests.support.api import slug_of

OTHER: Body = {"amount": 400, "currency": "EUR"}


def refused_there(scene: Scene) -> Body:
    leave = scene.dispatched()
    scene.report(leave, "failed", no_effect=True, error={"class": "declined"})
    return leave


def backing_off(scene: Scene) -> Body:
    leave = scene.dispatched()
    scene.report(leave, "failed", no_effect=True, retryable=True, error={"class": "refused"})
    return leave


def cancelled(scene: Scene) -> Body:
    intent = scene.recorded()
    scene.cancel(intent)
    return intent


STATES: Mapping[str, Callable[[Scene], Body]] = {
    "INTENT_RECORDED": lambda scene: scene.recorded(),
    "DISPATCHED": lambda scene: scene.dispatched(),
    "UNKNOWN": lambda scene: scene.unknown(),
    "FAILED_RETRYABLE": backing_off,
    "OUTCOME_CONFIRMED": lambda scene: scene.confirmed(),
    "FAILED": refused_there,
    "CANCELLED": cancelled,
}


@pytest.mark.parametrize("state", STATES)
def test_other_content_is_misuse_whatever_the_first_is_doing(scene: Scene, state: str) -> None:
    first = STATES[state](scene)
    assert scene.state(first) == state
    other = scene.intent("k1", PAYMENT, OTHER)
    assert (other.status_code, slug_of(other)) == (422, "idempotency-key-reused")
    assert other.json()["retryable"] is False
    assert "Retry-After" not in other.headers
    assert scene.state(first) == state
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize(
    ("state", "directive"),
    [
        ("INTENT_RECORDED", "dispatch"),
        ("DISPATCHED", "in_flight"),
        ("UNKNOWN", "reconcile"),
        ("FAILED_RETRYABLE", "in_flight"),
        ("OUTCOME_CONFIRMED", "done"),
        ("FAILED", "failed"),
        ("CANCELLED", "failed"),
    ],
)
def test_the_same_content_is_told_where_it_stands(scene: Scene, state: str, directive: str) -> None:
    first = STATES[state](scene)
    same = scene.intent()
    assert (same.status_code, same.headers["Idempotent-Replayed"]) == (200, "true")
    assert (same.json()["state"], same.json()["directive"]) == (state, directive)
    assert same.json()["attempt_id"] == first["attempt_id"]
    assert ("Retry-After" in same.headers) == (directive in {"in_flight", "reconcile"})
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize("state", ["INTENT_RECORDED", "DISPATCHED", "UNKNOWN", "FAILED_RETRYABLE", "FAILED"])
def test_leave_for_other_arguments_is_never_in_flight(scene: Scene, state: str) -> None:
    """A worker that means other arguments must not be told to come back until there is room for them."""
    first = STATES[state](scene)
    answer = scene.dispatch(first, worker="another", args_hash=hash_of(OTHER))
    assert (answer.status_code, slug_of(answer)) == (409, "args-changed")
    assert (answer.json()["retryable"], answer.json()["args"]) == (False, ARGS[PAYMENT])
    assert scene.state(first) == state
    nothing_else_went_wrong(scene)


def test_leave_for_other_arguments_than_a_held_one_is_misuse_too(scene: Scene) -> None:
    held = scene.recorded("k1", DEPLOY)
    answer = scene.dispatch(held, args_hash=hash_of(OTHER))
    assert (answer.status_code, slug_of(answer)) == (409, "args-changed")
    right = scene.dispatch(held)
    assert (right.status_code, slug_of(right)) == (409, "on-hold")
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize("amounts", [{"turns": 2}, {"tokens": 1}])
def test_usage_under_a_known_id_is_compared_before_anything_is_said_of_the_run(
    scene: Scene, amounts: Body
) -> None:
    scene.api.put("/runs/r", limits={"turns": 1})
    scene.api.post("/runs/r/usage", usage_id="u", usage={"turns": 1})
    other = scene.api.post("/runs/r/usage", usage_id="u", usage=amounts)
    assert (other.status_code, slug_of(other)) == (409, "usage-id-reused")
    assert scene.api.post("/runs/r/usage", usage_id="u", usage={"turns": 1}).status_code == 200
    nothing_else_went_wrong(scene)


def test_the_clock_is_not_asked_before_the_content(scene: Scene) -> None:
    """An intent past its expiry is still compared with what is known under its key."""
    first = scene.recorded(expires_at=f"{database_clock():%Y-%m-%dT%H:%M:%S}Z")
    assert slug_of(scene.intent("k1", PAYMENT, OTHER)) == "idempotency-key-reused"
    assert scene.recorded()["attempt_id"] == first["attempt_id"]
    nothing_else_went_wrong(scene)
