"""R34: several last words land together; each child is right and the parent never moves on.

Kind: a stored sum that forgets a summand. The operation's outcome is folded under the lock of its row, in the
transaction of each change, so it is the fold of its attempts whatever lands together.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import httpx

from ledger.models import Delivery, Destination, Operation
from ledger.queries.outcomes import folded
from ledger.rules.outcome import outcome_of
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import DROP_BEFORE, PAYMENT, Body, Scene
from tests.support.api import at_once

RUNS = 25
"""Each makes four pairs at once: a hundred meetings."""
CONSUMERS = ("shop", "books")


def told_to_two(scene: Scene) -> None:
    for name in CONSUMERS:
        Destination.objects.create(tenant=scene.people.tenant, name=name, url=f"https://{name}.example/hook")


def folds(about: Body) -> bool:
    """Is the stored outcome the fold of the attempts, with a settlement and its deliveries?"""
    operation = Operation.objects.get(pk=about["operation_id"])
    attempts = list(operation.attempts.order_by("number"))
    settlements = operation.settlements.count()
    told = Delivery.objects.filter(settlement__operation=operation).count()
    right = operation.outcome == outcome_of([folded(attempt) for attempt in attempts])
    return right and settlements == operation.settlements_count and told == settlements * len(CONSUMERS)


def meetings(scene: Scene, number: int) -> list[tuple[Body, list[Callable[[], httpx.Response]]]]:
    """Four operations, each with the two last words that will land together."""
    pairs: list[tuple[Body, list[Callable[[], httpx.Response]]]] = []
    for name in ("receipt+failure", "receipt+cancel", "receipt+variant", "failure+cancel"):
        leave = scene.dispatched(f"{name}-{number}")
        words: dict[str, Callable[[], httpx.Response]] = {
            "receipt": partial(scene.report, leave, "succeeded", result_ref=f"r-{name}"),
            "failure": partial(
                scene.report, leave, "failed", no_effect=True, retryable=True, error={"class": "refused"}
            ),
            "cancel": partial(scene.cancel, leave),
            "variant": partial(scene.intent, f"{name}-{number}", PAYMENT, {"amount": 1, "currency": "EUR"}),
        }
        pairs.append((leave, [words[word] for word in name.split("+")]))
    return pairs


def test_the_outcome_is_the_fold_of_whatever_lands_together(scene: Scene) -> None:
    told_to_two(scene)
    for number in range(RUNS):
        pairs = meetings(scene, number)
        answers = at_once([word for _, words in pairs for word in words])
        assert {answer.status_code for answer in answers} <= {200, 422}
        assert all(folds(about) for about, _ in pairs), number
    nothing_else_went_wrong(scene)


def test_an_operation_of_three_attempts_ends_as_their_fold(scene: Scene) -> None:
    """A first attempt proven absent, a second refused, the third in flight; the late receipt of the first and
    the failure of the third land together."""
    told_to_two(scene)
    declined = {"no_effect": True, "error": {"class": "declined"}}
    for number in range(5):
        first = scene.unknown(f"k{number}", how=DROP_BEFORE)
        scene.asks_until_settled()
        scene.time_passes(3600)
        second = scene.dispatched(scene.recorded(f"k{number}"), worker="w2")
        scene.report(second, "failed", worker_id="w2", retryable=True, **declined)
        scene.time_passes(3600)
        third = scene.dispatched(scene.recorded(f"k{number}"), worker="w3")
        assert third["attempt"] == 3
        answers = at_once(
            [
                partial(scene.report, first, "succeeded", result_ref=f"r-{number}"),
                partial(scene.report, third, "failed", worker_id="w3", **declined),
            ]
        )
        assert [answer.status_code for answer in answers] == [200, 200]
        assert folds(first)
    nothing_else_went_wrong(scene)
