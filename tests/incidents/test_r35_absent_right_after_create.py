"""R35: the read right after the create says absent, and each retry would make one more.

Kind: a look-up that is too early, believed.

Our rules differ in one point: once the provider's reference is in hand (`ref=p-1`), an *absent* after the
settle window is `conflicting_evidence`, for a person, also where the tool is idempotent.
"""

import pytest

from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.helping import answers_of
from tests.incidents.scene import APPLY_AND_DROP, DROP_BEFORE, FOUND, MAIL, NONE, PAYMENT, Scene


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("tool", [PAYMENT, MAIL])
def test_absent_within_the_settle_window_decides_nothing(scene: Scene, tool: str, named: bool) -> None:
    lost = scene.unknown(tool=tool, how=APPLY_AND_DROP)
    if named:
        scene.accepted(lost, "p-1")
    for seconds in (0, 5, 10):
        scene.time_passes(seconds)
        scene.asks(NONE)
        assert scene.state(lost) == "UNKNOWN"
        assert scene.dispatch(lost, worker="w2").status_code == 409
    assert {answer.row for answer in answers_of(lost)} == {"absent_too_early"}
    scene.time_passes(25)
    scene.asks(FOUND)
    assert (scene.state(lost), scene.effects()) == ("OUTCOME_CONFIRMED", 1)
    assert scene.operation(lost)["attempts"][0]["confirmed_by"] == "lookup"
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize(
    ("tool", "named", "reason"),
    [
        (MAIL, False, "not_idempotent"),
        (MAIL, True, "conflicting_evidence"),
        (PAYMENT, True, "conflicting_evidence"),
    ],
)
def test_absent_after_the_window_is_for_a_person(scene: Scene, tool: str, named: bool, reason: str) -> None:
    lost = scene.unknown(tool=tool, how=APPLY_AND_DROP)
    if named:
        scene.accepted(lost, "p-1")
    scene.asks_until_settled(NONE)
    assert (scene.state(lost), scene.on_desk(lost).reason) == ("MANUAL_REVIEW", reason)
    assert scene.dispatch(lost, worker="w2").status_code == 409
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize("how", [APPLY_AND_DROP, DROP_BEFORE])
def test_absent_after_the_window_sends_again_with_the_same_key_only(scene: Scene, how: str) -> None:
    first = scene.dispatched()
    scene.send(first, how)
    scene.report(first, "unknown")
    scene.asks_until_settled(NONE)
    assert scene.state(first) == "FAILED_RETRYABLE"
    scene.time_passes(700)
    again = scene.dispatched(first, worker="w2")
    assert (again["attempt"], again["idempotency_key"]) == (2, first["idempotency_key"])
    reference = scene.send(again)
    assert scene.report(again, "succeeded", result_ref=reference).json()["state"] == "OUTCOME_CONFIRMED"
    assert scene.effects() == 1
    nothing_else_went_wrong(scene)
