"""R47: who may send again is decided by the rule the tool has here, never by a client that lost its line.

Kind: a second send decided by who cannot know what became of the first.
"""

import pytest

from ledger.models import Operation
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import APPLY_AND_DROP, LOOK, MAIL, NONE, NOTE, PAYMENT, Body, Scene
from tests.support.api import slug_of


def test_an_idempotent_tool_is_sent_again_with_the_same_key_after_an_absent(scene: Scene) -> None:
    lost = scene.unknown(tool=PAYMENT)
    assert scene.dispatch(lost).status_code == 409
    scene.asks_until_settled(NONE)
    assert scene.recorded(tool=PAYMENT)["state"] == "FAILED_RETRYABLE"
    scene.time_passes(700)
    again = scene.dispatched(scene.recorded(tool=PAYMENT), worker="w2")
    reference = scene.send(again)
    assert scene.report(again, "succeeded", result_ref=reference).json()["state"] == "OUTCOME_CONFIRMED"
    assert scene.effects() == 1
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize(("tool", "reason"), [(MAIL, "not_idempotent"), (NOTE, "no_lookup")])
def test_what_is_not_declared_repeatable_never_goes_by_itself(scene: Scene, tool: str, reason: str) -> None:
    """Also where nothing is declared at all."""
    lost = scene.unknown(tool=tool)
    assert slug_of(scene.dispatch(lost)) == "in-flight"
    scene.asks_until_settled(NONE)
    assert (scene.state(lost), scene.on_desk(lost).reason) == ("MANUAL_REVIEW", reason)
    assert slug_of(scene.dispatch(lost, worker="w2")) == "on-hold"
    nothing_else_went_wrong(scene)


def test_what_is_not_declared_repeatable_is_found(scene: Scene) -> None:
    lost = scene.unknown(tool=MAIL, how=APPLY_AND_DROP)
    scene.asks_until_settled()
    assert (scene.state(lost), scene.effects()) == ("OUTCOME_CONFIRMED", 1)
    nothing_else_went_wrong(scene)


def test_a_look_may_be_repeated(scene: Scene) -> None:
    leave = scene.dispatched(tool=LOOK)
    scene.report(leave, "unknown", error={"class": "reset"})
    scene.time_passes()
    scene.recover()
    assert scene.state(leave) == "FAILED_RETRYABLE"
    scene.time_passes(700)
    again = scene.dispatched(scene.recorded(tool=LOOK), worker="w2")
    assert scene.report(again, "succeeded", result_ref="shelf-3").json()["state"] == "OUTCOME_CONFIRMED"
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize("said", [{"idempotent": True}, {"effect": "read"}, {"retryable": True}])
def test_what_the_agent_says_of_its_tool_is_not_heard(scene: Scene, said: Body) -> None:
    answer = scene.intent(tool=MAIL, **said)
    assert (answer.status_code, slug_of(answer)) == (422, "invalid-request")
    assert not Operation.objects.filter(tenant=scene.people.tenant).exists()
    nothing_else_went_wrong(scene)


def test_a_wish_to_retry_is_no_leave(scene: Scene) -> None:
    """`retryable` in a report counts only with a proof that nothing happened."""
    leave, _ = scene.sent(tool=MAIL, how=APPLY_AND_DROP)
    told = scene.report(leave, "failed", retryable=True, no_effect=True, error={"class": "reset"}).json()
    assert told["state"] == "UNKNOWN"
    scene.asks_until_settled()
    assert (scene.state(leave), scene.effects()) == ("OUTCOME_CONFIRMED", 1)
    nothing_else_went_wrong(scene)
