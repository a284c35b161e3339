"""R13: a start is announced once when a job is made and again after its approval; two runners start.

Kind: the same content told again with other words around it. What stands beside the content makes no second
attempt and no second permission; what differs in it is kept as an event, once.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import DEPLOY, Scene
from tests.support.api import at_once, slug_of

AROUND: dict[str, Any] = {
    "run": "other-run",
    "step": "other-step",
    "task_id": "phase:approved",
    "actor": "another model",
    "retry_of": "another-key",
    "requested_by": "second-operator",
    "expires_at": "2100-01-01T00:00:00Z",
}


def test_other_words_around_it_are_kept_and_change_nothing(scene: Scene) -> None:
    first = scene.recorded(task_id="phase:waiting-approval", worker_id="runner-1")
    again = scene.intent(task_id="phase:approved", worker_id="runner-2")
    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (200, "true")
    assert again.json()["attempt_id"] == first["attempt_id"]
    assert scene.events(first, "attempt.posted_again") == [{"differs": {"task_id": "phase:approved"}}]
    assert scene.attempt(first).operation.task_id == "phase:waiting-approval"
    leaves = [scene.dispatch(first, worker=runner) for runner in ("runner-1", "runner-2")]
    assert [leave.status_code for leave in leaves] == [200, 409]
    assert slug_of(leaves[1]) == "in-flight"
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize("told_twice", [False, True])
def test_everything_that_can_differ_is_kept_once(scene: Scene, told_twice: bool) -> None:
    first = scene.recorded()
    for _ in range(1 + told_twice):
        assert scene.recorded(**AROUND)["attempt_id"] == first["attempt_id"]
    (kept,) = scene.events(first, "attempt.posted_again")
    assert set(kept["differs"]) == set(AROUND)
    attempt = scene.attempt(first)
    assert (attempt.expires_at, attempt.requested_by, attempt.operation.run) == (None, None, None)
    nothing_else_went_wrong(scene)


def test_the_same_words_are_no_news(scene: Scene) -> None:
    first = scene.recorded(**AROUND)
    scene.recorded(**{**AROUND, "expires_at": "2100-01-01T01:00:00+01:00"})
    scene.recorded()
    assert scene.events(first, "attempt.posted_again") == []
    nothing_else_went_wrong(scene)


def test_two_starts_at_once_are_one_attempt_and_one_permission(scene: Scene) -> None:
    phases = ["waiting-approval", "approved"] * 4
    answers = at_once([partial(scene.intent, task_id=phase) for phase in phases])
    assert len({answer.json()["attempt_id"] for answer in answers}) == 1
    about = answers[0].json()
    assert len(scene.events(about, "attempt.posted_again")) == 1, "the other of the two phases"
    leaves = at_once([partial(scene.dispatch, about, worker=f"runner-{number}") for number in range(8)])
    assert sorted(leave.status_code for leave in leaves) == [200] + [409] * 7
    nothing_else_went_wrong(scene)


def test_a_start_announced_before_and_after_the_approval_is_sent_once(scene: Scene) -> None:
    first = scene.recorded("k1", DEPLOY, task_id="waiting-approval")
    assert first["directive"] == "hold"
    scene.approve(first)
    second = scene.recorded("k1", DEPLOY, task_id="approved")
    assert (second["attempt_id"], second["directive"]) == (first["attempt_id"], "dispatch")
    leave = scene.dispatched(second)
    assert scene.dispatch(second, worker="runner-2").status_code == 409
    scene.report(leave, "succeeded", result_ref=scene.send(leave))
    assert scene.effects() == 1
    nothing_else_went_wrong(scene)


def test_an_agent_that_never_says_the_same_words_fills_no_history(scene: Scene) -> None:
    first = scene.recorded()
    for number in range(30):
        scene.recorded(task_id=f"poll-{number}")
    assert len(scene.events(first, "attempt.posted_again")) == 20
    nothing_else_went_wrong(scene)
