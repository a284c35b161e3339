"""R82: Duplicates slip through because dedup looks at one table only.

Kind: one fact is one row under one unique constraint, while it waits, when it is applied and ever after.
"""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from ledger.models import Event, ParkedFact, Settlement
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import Scene
from tests.support.api import Api, at_once

LOST = "att_" + "7" * 26
SAID = {"worker_id": "hook", "outcome": "succeeded", "result_ref": "p-1"}
Tell = Callable[[Api], httpx.Response]


def by_key(api: Api) -> httpx.Response:
    return api.post("/outcomes", operation_key="k1", **SAID)


def by_id(api: Api) -> httpx.Response:
    return api.post(f"/attempts/{LOST}/outcome", operation_key="k1", **SAID)


def is_replay(answer: httpx.Response) -> bool:
    return bool(answer.headers.get("idempotent-replayed") == "true")


def reports(scene: Scene) -> int:
    """How often the fact became a line of the history."""
    return Event.objects.filter(tenant=scene.people.tenant, kind="attempt.outcome_reported").count()


@pytest.mark.parametrize("tell", [by_key, by_id])
def test_e_1_is_a_duplicate_in_every_phase(scene: Scene, tell: Tell) -> None:
    waiting = [tell(scene.api), tell(scene.api)]
    scene.recorded()
    applied = [tell(scene.api), tell(scene.api)]
    assert [is_replay(answer) for answer in (*waiting, *applied)] == [False, True, True, True]
    assert ParkedFact.objects.get().times_told == 4
    assert reports(scene) == 1
    nothing_else_went_wrong(scene)


def test_told_in_two_ways_it_counts_once(scene: Scene) -> None:
    by_key(scene.api)
    by_id(scene.api)
    intent = scene.recorded()
    scene.report(intent, "succeeded", worker_id="hook", result_ref="p-1")
    assert reports(scene) == 1
    nothing_else_went_wrong(scene)


def test_many_at_once_settle_once(scene: Scene) -> None:
    scene.dispatched()
    answers = at_once([lambda: by_key(scene.api)] * 8)
    assert sorted(is_replay(answer) for answer in answers) == [False] + [True] * 7
    assert ParkedFact.objects.get().times_told == 8
    assert Settlement.objects.filter(tenant=scene.people.tenant).count() == 1
    nothing_else_went_wrong(scene)
