"""R23: a hash over time stamps and short-lived tokens, so that the retry of one purchase is another purchase.

Kind: content that changes although what is meant does not. Our rules decide otherwise than the report asked:
a rule lists no fields that are left out of the hash. Whoever puts a clock into the arguments is refused on
the retry and a person sees both, field by field; there is never a silent second send.
"""

from __future__ import annotations

import pytest

from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import DROP_BEFORE, PAYMENT, Body, Scene
from tests.support.api import slug_of


def purchase(second: int) -> Body:
    """The same purchase as an agent words it anew after each restart."""
    volatile = {"createdAt": f"2026-11-29T20:00:0{second}Z"}
    return {"amount": 40, "currency": "EUR", "order": 9, "sdk": volatile, "spt": f"tok{second}"}


@pytest.mark.parametrize("arrived", [True, False])
def test_the_retry_is_refused_and_shown_beside_the_first(scene: Scene, arrived: bool) -> None:
    how = {} if arrived else {"how": DROP_BEFORE}
    first = scene.unknown("order:9", tool=PAYMENT, args=purchase(1), **how)
    retry = scene.intent("order:9", PAYMENT, purchase(2))
    assert (retry.status_code, slug_of(retry)) == (422, "idempotency-key-reused")
    held = retry.json()
    assert scene.dispatch(held).status_code == 409
    (compared,) = scene.item_page(held).comparisons
    assert [change.path for change in compared.changes] == ["/sdk/createdAt", "/spt"]
    assert not scene.action(held, "approve").enabled, "the first may have happened"
    scene.asks_until_settled()
    assert scene.state(first) == ("OUTCOME_CONFIRMED" if arrived else "FAILED_RETRYABLE")
    assert scene.all_effects() == (1 if arrived else 0)
    nothing_else_went_wrong(scene)


def test_what_is_only_told_beside_the_arguments_may_change(scene: Scene) -> None:
    """Where volatile words belong: beside the content, where they are kept and hashed by nobody."""
    first = scene.recorded("order:9", task_id="2026-11-29T20:00:01Z tok1")
    again = scene.intent("order:9", task_id="2026-11-29T20:00:02Z tok2")
    assert (again.status_code, again.json()["attempt_id"]) == (200, first["attempt_id"])
    nothing_else_went_wrong(scene)


def test_the_providers_key_holds_nothing_volatile(scene: Scene) -> None:
    first = scene.unknown("order:9", how=DROP_BEFORE)
    scene.asks_until_settled()
    assert scene.state(first) == "FAILED_RETRYABLE"
    scene.time_passes(seconds=3600)
    before = scene.attempt(first).idempotency_key
    leave = scene.dispatched(scene.recorded("order:9"), worker="w2")
    assert leave["idempotency_key"] == before
    scene.report(leave, "succeeded", result_ref=scene.send(leave))
    assert scene.effects("order:9") == 1
    nothing_else_went_wrong(scene)
