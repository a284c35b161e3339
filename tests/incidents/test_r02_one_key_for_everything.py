"""R02: one key configured for a whole client, so that different operations share it.

Kind: one name for different things. Our rules decide otherwise than the report asked: the other content is
not merely refused, it is held once for a person (`arguments_changed`), and further contents are evidence on
its item. Nothing of it can be sent meanwhile, the first content included.
"""

from __future__ import annotations

import httpx
import pytest

from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import ARGS, MAIL, NOTE, PAYMENT, Body, Scene
from tests.support.api import slug_of

CAPTURE: Body = {"amount": 99, "currency": "EUR"}


def test_another_operation_under_the_key_is_refused_and_held(scene: Scene) -> None:
    first = scene.recorded("k1", PAYMENT)
    reused = scene.intent("k1", MAIL)
    assert (reused.status_code, slug_of(reused)) == (422, "idempotency-key-reused")
    assert reused.json()["retryable"] is False
    assert reused.json()["attempt_id"] != first["attempt_id"]
    again = scene.intent("k1", PAYMENT)
    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (200, "true")
    assert again.json()["attempt_id"] == first["attempt_id"]
    assert scene.history(first) == ["attempt.intent", "attempt.intent", "attempt.held"]
    assert len(scene.operation(first)["attempts"]) == 2
    metrics = httpx.get(f"{scene.server.address}/metrics", trust_env=False).text
    assert 'ledger_open_items{reason="arguments_changed"} 1.0' in metrics
    assert scene.all_effects() == 0
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize(("tool", "args"), [(MAIL, None), (PAYMENT, CAPTURE)], ids=["tool", "arguments"])
def test_what_came_first_waits_until_a_person_says_which_is_meant(
    scene: Scene, tool: str, args: Body | None
) -> None:
    first = scene.recorded("k1", PAYMENT)
    held = scene.intent("k1", tool, args).json()
    refused = scene.dispatch(first)
    assert (refused.status_code, slug_of(refused)) == (409, "on-hold")
    assert scene.recorded("k1", PAYMENT)["directive"] == "hold"
    assert scene.on_desk(held).reason == "arguments_changed"
    assert scene.item_page(held).comparisons
    nothing_else_went_wrong(scene)


def test_a_client_that_uses_it_for_everything_makes_one_question(scene: Scene) -> None:
    scene.recorded("k1", NOTE)
    answers = [scene.intent("k1", NOTE, {"text": f"note {number}"}) for number in range(5)]
    assert {slug_of(answer) for answer in answers} == {"idempotency-key-reused"}
    held = {answer.json()["attempt_id"] for answer in answers}
    assert len(held) == 1
    about = answers[0].json()
    assert scene.history(about).count("attempt.variant_seen") == 4, "each further content is on record"
    assert scene.intent("k1", NOTE, {"text": "note 3"}).status_code == 422
    assert scene.history(about).count("attempt.variant_seen") == 4, "and each of them once"
    assert len(scene.listed()) == 1
    nothing_else_went_wrong(scene)


def test_after_it_has_happened_other_content_can_never_be_sent_under_its_key(scene: Scene) -> None:
    done = scene.confirmed("k1", tool=PAYMENT)
    held = scene.intent("k1", PAYMENT, CAPTURE)
    assert (held.status_code, slug_of(held)) == (422, "idempotency-key-reused")
    assert (held.json()["directive"], held.json()["result_ref"]) == ("done", done["result_ref"])
    approve = scene.action(held.json(), "approve")
    assert not approve.enabled
    assert scene.dispatch(held.json()).status_code == 409
    assert scene.all_effects() == 1
    nothing_else_went_wrong(scene)


def test_each_content_has_a_provider_key_of_its_own(scene: Scene) -> None:
    """The provider must never see other arguments under a key it knows."""
    scene.recorded("k1", PAYMENT)
    held = scene.intent("k1", PAYMENT, CAPTURE).json()
    scene.approve(held)
    leave = scene.dispatched(scene.recorded("k1", PAYMENT, CAPTURE))
    assert leave["args"] == CAPTURE
    assert leave["idempotency_key"] != scene.attempt(held).operation.attempts.get(number=1).idempotency_key
    scene.report(leave, "succeeded", result_ref=scene.send(leave))
    sibling = scene.intent("k1", PAYMENT, dict(ARGS[PAYMENT]))
    assert sibling.json()["directive"] == "done", "what was meant has happened"
    assert scene.all_effects() == 1
    nothing_else_went_wrong(scene)
