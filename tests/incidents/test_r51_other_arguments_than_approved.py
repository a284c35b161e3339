"""R51: approved A, executed B. An approval is bound to the attempt, tool, arguments, rule, tenant and scopes.

Kind: a permission for one thing, spent on another.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ledger.models import Approval, ApprovalUse
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.helping import publish
from tests.incidents.scene import DEPLOY, MAIL, Body, Scene, key_for
from tests.ledger.ingest.steps import hash_of
from tests.support.api import Api, slug_of

H2 = {"version": "2026.12"}


@pytest.fixture
def approved(scene: Scene) -> Body:
    """INTENT k1 (H1), approved by a person who saw H1."""
    held = scene.recorded("k1", DEPLOY)
    scene.approve(held)
    return held


def test_leave_for_other_arguments_is_refused_with_the_approved_ones(scene: Scene, approved: Body) -> None:
    refused = scene.dispatch(approved, args_hash=hash_of(H2))
    assert (refused.status_code, slug_of(refused), refused.json()["args"]) == (
        409,
        "args-changed",
        {"version": "2026.11"},
    )
    _nothing_was_sent(scene)
    _the_changed_one_is_held(scene, approved, tool=DEPLOY, args=H2)


def test_so_is_leave_under_the_key_of_another_tool(scene: Scene, approved: Body) -> None:
    _the_changed_one_is_held(scene, approved, tool=MAIL, args={"version": "2026.11"})


def test_another_rule_than_the_approved_one(scene: Scene, approved: Body) -> None:
    publish(scene, {DEPLOY: {"effect": "deletion"}})
    assert slug_of(scene.dispatch(approved)) == "approval-stale"
    _nothing_was_sent(scene)
    nothing_else_went_wrong(scene)


def test_a_policy_that_forbids_it(scene: Scene, approved: Body) -> None:
    publish(scene, {DEPLOY: {"review": "always", "effect": "deployment", "target": "/version"}})
    refused = scene.dispatch(approved)
    assert (refused.status_code, slug_of(refused)) == (403, "approval-stale")
    _nothing_was_sent(scene)
    nothing_else_went_wrong(scene)


def test_another_tenant(scene: Scene, approved: Body) -> None:
    asked = {"worker_id": "w1", "args_hash": approved["args_hash"]}
    answer = scene.stranger.post(f"/attempts/{approved['attempt_id']}/dispatch", **asked)
    assert (answer.status_code, slug_of(answer)) == (404, "not-found")
    _nothing_was_sent(scene)
    nothing_else_went_wrong(scene)


def test_a_key_that_does_not_cover_the_tool(scene: Scene, approved: Body) -> None:
    with _as_key(scene, "tool:mail.*") as narrow:
        asked = {"worker_id": "w1", "args_hash": approved["args_hash"]}
        answer = narrow.post(f"/attempts/{approved['attempt_id']}/dispatch", **asked)
        assert (answer.status_code, slug_of(answer)) == (403, "scope-refused")
    _nothing_was_sent(scene)
    nothing_else_went_wrong(scene)


def test_what_was_approved_is_what_goes(scene: Scene, approved: Body) -> None:
    """After all of that the approval still stands for H1, once."""
    scene.dispatch(approved, args_hash=hash_of(H2))
    leave = scene.dispatched(approved)
    assert (leave["args"], leave["args_hash"]) == ({"version": "2026.11"}, approved["args_hash"])
    reference = scene.send(leave)
    scene.report(leave, "succeeded", result_ref=reference)
    assert (scene.effects(), ApprovalUse.objects.get().args_hash) == (1, approved["args_hash"])
    nothing_else_went_wrong(scene)


def _the_changed_one_is_held(scene: Scene, approved: Body, *, tool: str, args: Body) -> None:
    """An attempt of its own in MANUAL_REVIEW; while it is held, not even the approved one goes."""
    changed = scene.intent("k1", tool, args)
    assert (changed.status_code, slug_of(changed)) == (422, "idempotency-key-reused")
    held = changed.json()
    assert held["operation_id"] == approved["operation_id"]
    assert (held["state"], held["attempt"], held["reason"]) == ("MANUAL_REVIEW", 2, "arguments_changed")
    assert slug_of(scene.dispatch(held)) == "on-hold"
    assert slug_of(scene.dispatch(approved)) == "on-hold"
    _nothing_was_sent(scene)
    nothing_else_went_wrong(scene)


def _nothing_was_sent(scene: Scene) -> None:
    assert (scene.effects(), ApprovalUse.objects.exists()) == (0, False)
    assert Approval.objects.get().used_at is None


@contextmanager
def _as_key(scene: Scene, *scopes: str) -> Iterator[Api]:
    with scene.api.as_key(key_for(scene.people.agent, scopes=scopes)) as other:
        yield other
