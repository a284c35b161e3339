"""R01: an agent mints a fresh key for the retry of the same call.

Kind: the same call twice under two names. Our rules decide otherwise than the report asked: what makes a twin
is tenant, tool, arguments, run and step (not the task), and a twin is held in any state but FAILED, CANCELLED
and SUPERSEDED, so also one that was only recorded.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import ARGS, LOOK, PAYMENT, Scene
from tests.ledger.ingest.steps import hash_of
from tests.support.api import at_once, slug_of

PLACE: dict[str, Any] = {"run": "T1", "step": "S3"}


def test_the_twin_of_what_may_have_happened_is_held_beside_it(scene: Scene) -> None:
    first = scene.unknown("k1", **PLACE)
    answer = scene.intent("random-1", **PLACE)
    assert answer.status_code == 202
    twin = answer.json()
    assert (twin["directive"], twin["reason"]) == ("hold", "suspected_duplicate")
    refused = scene.dispatch(twin)
    assert (refused.status_code, slug_of(refused)) == (409, "on-hold")
    page = scene.item_page(twin)
    assert [(other.operation_key, other.sent) for other in page.twins] == [("k1", True)]
    assert scene.on_desk(twin).operation_id != first["operation_id"]
    assert scene.all_effects() == 1
    nothing_else_went_wrong(scene)


def test_the_twin_of_what_is_confirmed_needs_a_persons_word(scene: Scene) -> None:
    scene.confirmed("k1", **PLACE)
    twin = scene.recorded("random-1", **PLACE)
    assert (twin["directive"], twin["reason"]) == ("hold", "suspected_duplicate")
    assert scene.all_effects() == 1
    scene.approve(twin)
    leave = scene.dispatched(twin)
    scene.report(leave, "succeeded", result_ref=scene.send(leave))
    assert scene.all_effects() == 2, "the second was approved"
    nothing_else_went_wrong(scene)


def test_a_real_second_payment_passes(scene: Scene) -> None:
    scene.unknown("k1", **PLACE)
    assert scene.recorded("other-step", run="T1", step="S4")["directive"] == "dispatch"
    assert scene.recorded("other-run", run="T2", step="S3")["directive"] == "dispatch"
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize("state", ["recorded", "dispatched"])
def test_each_new_random_key_is_held_whatever_the_first_is_doing(scene: Scene, state: str) -> None:
    getattr(scene, state)("k1", **PLACE)
    twins = [scene.recorded(f"random-{number}", **PLACE) for number in range(3)]
    assert [twin["directive"] for twin in twins] == ["hold"] * 3
    assert len({twin["operation_id"] for twin in twins}) == 3
    nothing_else_went_wrong(scene)


def test_a_hash_alone_has_twins_too(scene: Scene) -> None:
    scene.dispatched("k1", **PLACE)
    answer = scene.api.post(
        "/intents", operation_key="random", tool=PAYMENT, args_hash=hash_of(dict(ARGS[PAYMENT])), **PLACE
    )
    assert (answer.status_code, answer.json()["reason"]) == (202, "suspected_duplicate")
    nothing_else_went_wrong(scene)


def test_what_certainly_did_not_happen_is_no_twin(scene: Scene) -> None:
    leave = scene.dispatched("k1", **PLACE)
    scene.report(leave, "failed", no_effect=True, error={"class": "declined"})
    assert scene.recorded("k2", **PLACE)["directive"] == "dispatch"
    nothing_else_went_wrong(scene)


def test_looking_twice_duplicates_nothing(scene: Scene) -> None:
    scene.recorded("k1", LOOK, **PLACE)
    assert scene.recorded("k2", LOOK, **PLACE)["directive"] == "dispatch"
    nothing_else_went_wrong(scene)


def test_of_many_random_keys_at_once_one_may_go(scene: Scene) -> None:
    answers = at_once([partial(scene.intent, f"random-{number}", **PLACE) for number in range(8)])
    assert sorted(answer.json()["directive"] for answer in answers) == ["dispatch"] + ["hold"] * 7
    leaves = at_once([partial(scene.dispatch, answer.json()) for answer in answers])
    assert sorted(leave.status_code for leave in leaves) == [200] + [409] * 7
    nothing_else_went_wrong(scene)
