"""R26: a delayed old failure overwrites a good order; whatever may leave "failed" opens the hole again.

Kind: a late word about something that has ended. It is stored, answered 200 so that its sender stops, and
moves nothing; only what contradicts the end (a second reference, a success after a failure) asks a person,
and only a person's decision moves it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import httpx
import pytest

from ledger.models import Delivery, Destination
from review import decisions
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import Body, Scene
from tests.support import make

Word = Callable[[Scene, Body], httpx.Response]


def failure(kind: str, **more: bool) -> Word:
    return lambda scene, about: scene.report(about, "failed", error={"class": kind}, **more)


NO_NEWS: Mapping[str, Word] = {
    "old failure": failure("timeout"),
    "old proof of no effect": failure("declined", no_effect=True),
    "old retryable failure": failure("refused", no_effect=True, retryable=True),
    "unknown": lambda scene, about: scene.report(about, "unknown"),
    "the same receipt": lambda scene, about: scene.report(
        about, "succeeded", result_ref="r-1", worker_id="w2"
    ),
    "success without a receipt": lambda scene, about: scene.report(about, "succeeded"),
    "its own request id": lambda scene, about: scene.accepted(about, "r-1"),
    "dispatch": lambda scene, about: scene.dispatch(about, worker="w9"),
}


def destination(scene: Scene) -> None:
    Destination.objects.create(tenant=scene.people.tenant, name="shop", url="https://shop.example/hook")


@pytest.mark.parametrize("word", NO_NEWS)
def test_what_is_confirmed_stays_so(scene: Scene, word: str) -> None:
    destination(scene)
    leave = scene.dispatched()
    scene.report(leave, "succeeded", result_ref="r-1")
    late = NO_NEWS[word](scene, leave)
    assert late.status_code == (409 if word == "dispatch" else 200)
    assert (late.json()["state"], late.json()["directive"]) == ("OUTCOME_CONFIRMED", "done")
    assert late.json()["result_ref"] == "r-1"
    if word != "dispatch" and "evidence_only" in late.json():
        assert late.json()["evidence_only"] is True
    again = NO_NEWS[word](scene, leave)
    assert again.json()["state"] == "OUTCOME_CONFIRMED"
    assert scene.history(leave).count("operation.settled") == 1
    assert Delivery.objects.count() == 1, "nothing new is told to anybody"
    assert scene.listed() == []
    nothing_else_went_wrong(scene)


def failed(scene: Scene) -> Body:
    leave = scene.dispatched()
    failure("declined", no_effect=True)(scene, leave)
    return leave


def cancelled(scene: Scene) -> Body:
    intent = scene.recorded()
    scene.cancel(intent)
    return intent


@pytest.mark.parametrize("word", ["old failure", "old proof of no effect", "unknown"])
def test_what_failed_stays_so(scene: Scene, word: str) -> None:
    destination(scene)
    about = failed(scene)
    late = NO_NEWS[word](scene, about)
    assert (late.status_code, late.json()["state"], late.json()["directive"]) == (200, "FAILED", "failed")
    assert Delivery.objects.count() == 1
    assert scene.listed() == []
    nothing_else_went_wrong(scene)


CONTRADICTS: Mapping[str, tuple[Callable[[Scene], Body], str]] = {
    "FAILED": (failed, "r-1"),
    "CANCELLED": (cancelled, "r-1"),
    "OUTCOME_CONFIRMED": (lambda scene: scene.confirmed(), "r-2"),
}


@pytest.mark.parametrize("state", CONTRADICTS)
def test_what_contradicts_the_end_moves_nothing_and_asks_a_person(scene: Scene, state: str) -> None:
    end, reference = CONTRADICTS[state]
    about = end(scene)
    late = scene.report(about, "succeeded", result_ref=reference, provider_request_id=reference)
    assert (late.status_code, late.json()["state"]) == (200, state)
    assert late.json()["evidence_only"] is True
    assert scene.on_desk(about).reason == "conflicting_evidence"
    refused = scene.dispatch(about, worker="w9")
    assert refused.status_code == 409
    nothing_else_went_wrong(scene)


def test_only_a_persons_word_leaves_an_end_and_it_is_an_event(scene: Scene) -> None:
    destination(scene)
    about = failed(scene)
    scene.report(about, "succeeded", result_ref="r-1")
    item = make.item_of(scene.attempt(about))
    decisions.decide_conflict(
        scene.people.operator, item.pk, why="seen in their books", answer="happened", reference="r-1"
    )
    attempt = scene.attempt(about)
    assert (attempt.state, attempt.confirmed_by) == ("OUTCOME_CONFIRMED", "operator")
    assert "attempt.conflict_decided" in scene.history(about) or "review.decided" in scene.history(about)
    settled = [said["outcome"] for said in scene.events(about, "operation.settled")]
    assert settled == ["failed", "confirmed"], "the consumer hears of it as the second settlement"
    nothing_else_went_wrong(scene)


def test_late_words_in_every_order_end_alike(scene: Scene) -> None:
    """Whichever arrives last, a receipt decides, and the failure beside it is evidence."""
    words = [
        partial(scene.report, outcome="failed", error={"class": "timeout"}),
        partial(scene.report, outcome="succeeded", result_ref="r-1"),
        partial(scene.report, outcome="unknown", error={"class": "reset"}),
    ]
    for number, order in enumerate([(0, 1, 2), (1, 0, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1), (2, 0, 1)]):
        leave = scene.dispatched(f"k{number}")
        for index in order:
            assert words[index](leave).status_code == 200
        assert scene.state(leave) == "OUTCOME_CONFIRMED", order
        assert len(scene.events(leave, "attempt.outcome_reported")) == 3
    nothing_else_went_wrong(scene)
