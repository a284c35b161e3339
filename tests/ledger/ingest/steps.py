"""The steps an agent takes, each one call."""

from __future__ import annotations

from typing import Any

import httpx

from ledger.rules.canonical import canonical_bytes, content_hash
from tests.support.api import Api

ARGS = {"to": "a@example.org", "amount": 1.5}

STANDING = {
    "operation_id", "attempt_id", "attempt", "state", "outcome", "args_hash", "policy_version",
    "state_since", "due_at", "directive", "reason", "review_url", "result_ref",
}  # fmt: skip


def hash_of(args: dict[str, Any]) -> str:
    return content_hash(canonical_bytes(args))


def post_intent(api: Api, **changed: Any) -> httpx.Response:
    body = {"operation_key": "invoice:1", "tool": "email.send", "args": ARGS, **changed}
    return api.post("/intents", **{name: value for name, value in body.items() if value is not None})


def new_attempt(api: Api, **changed: Any) -> dict[str, Any]:
    """A posted intent that was accepted."""
    answer = post_intent(api, **changed)
    assert answer.status_code in {201, 202}, answer.text
    body: dict[str, Any] = answer.json()
    return body


def post_dispatch(api: Api, attempt: dict[str, Any], **changed: Any) -> httpx.Response:
    body = {"worker_id": "w1", "leave_id": "l1", "args_hash": attempt["args_hash"], **changed}
    return api.post(f"/attempts/{attempt['attempt_id']}/dispatch", **body)


def sent_attempt(api: Api, **changed: Any) -> dict[str, Any]:
    """A posted intent that was given leave."""
    answer = post_dispatch(api, new_attempt(api, **changed))
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def post_outcome(
    api: Api, attempt: dict[str, Any], outcome: str = "succeeded", **said: Any
) -> httpx.Response:
    return api.post(f"/attempts/{attempt['attempt_id']}/outcome", worker_id="w1", outcome=outcome, **said)


def fail_without_effect(api: Api, attempt: dict[str, Any], *, retryable: bool) -> httpx.Response:
    error = {"class": "refused", "message": "no"}
    return post_outcome(api, attempt, "failed", no_effect=True, retryable=retryable, error=error)
