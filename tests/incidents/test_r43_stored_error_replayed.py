"""R43: a provider that keeps answers per key replays its stored 500, which says nothing new.

Kind: an old answer given again, counted as news.

Our rules have no count of replayed errors: each is *unknown*, looked up, and after `max_attempts` sends the
desk is asked (`attempts_used_up`), where two people may choose a new provider key, which the page calls
unprotected.
"""

import httpx
import pytest

from review import decisions
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.helping import StoredErrors, asked_through_a_line, publish
from tests.incidents.scene import OWN, PAYMENT, Body, Scene
from tests.support import make
from tests.support.proxy import Proxy

BROKE = {"class": "unknown", "message": "500 it broke (Idempotent-Replayed: true)"}


def test_an_effect_behind_the_stored_error_is_found(scene: Scene) -> None:
    with asked_through_a_line(scene) as line:
        line.fault = StoredErrors(has_the_effect=True)
        leave = scene.dispatched()
        assert [_send(scene, line, leave), _send(scene, line, leave)] == [500, 500]
        first = scene.report(leave, "failed", error=BROKE)
        assert (first.json()["state"], first.json()["evidence_only"]) == ("UNKNOWN", False)
        again = scene.report(leave, "failed", error=BROKE)
        assert again.headers["Idempotent-Replayed"] == "true"
        scene.time_passes()
        scene.recover()
    assert (scene.state(leave), scene.effects()) == ("OUTCOME_CONFIRMED", 1)
    assert scene.history(leave).count("attempt.outcome_reported") == 1
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize("retryable", [True, False])
def test_a_500_never_proves_that_nothing_happened(scene: Scene, retryable: bool) -> None:
    """Whatever the agent makes of it."""
    leave = scene.dispatched()
    told = scene.report(leave, "failed", no_effect=True, retryable=retryable, error=BROKE)
    assert told.json()["state"] == "UNKNOWN"
    nothing_else_went_wrong(scene)


def test_what_never_happened_goes_to_the_desk_and_on_with_a_new_key(scene: Scene) -> None:
    publish(scene, {PAYMENT: {"max_attempts": 3}})
    errors = StoredErrors(has_the_effect=False)
    with asked_through_a_line(scene) as line:
        line.fault = errors
        leave = scene.dispatched()
        for number in (1, 2, 3):
            assert (leave["attempt"], _send(scene, line, leave)) == (number, 500)
            assert scene.report(leave, "failed", error=BROKE).json()["state"] == "UNKNOWN"
            scene.asks_until_settled()
            if number < 3:
                assert scene.state(leave) == "FAILED_RETRYABLE"
                scene.time_passes(700)
                leave = scene.dispatched(leave, worker=f"w{number}")
        assert (scene.state(leave), scene.on_desk(leave).reason) == ("MANUAL_REVIEW", "attempts_used_up")
        assert len(set(errors.keys)) == 1, "no send before a person's word has a new key"
        assert scene.dispatch(leave).status_code == 409
        nothing_else_went_wrong(scene)
        _a_new_key_is_chosen(scene, line, leave)
    nothing_else_went_wrong(scene)


def test_the_ledgers_own_sends_take_a_500_for_unknown(scene: Scene) -> None:
    publish(scene, {OWN: {"max_attempts": 2}})
    errors = StoredErrors(has_the_effect=False)
    with asked_through_a_line(scene, OWN) as line:
        line.fault = errors
        own = scene.recorded(tool=OWN)
        scene.recover()
        for _ in range(8):
            scene.time_passes(700)
            scene.recover()
        states = [attempt["state"] for attempt in scene.operation(own)["attempts"]]
        assert states == ["SUPERSEDED", "MANUAL_REVIEW"]
        assert (len(errors.keys), len(set(errors.keys)), scene.effects()) == (2, 1, 0)
        nothing_else_went_wrong(scene)


def _send(scene: Scene, line: Proxy, leave: Body) -> int:
    scene.sent_by_agents += 1
    body = {**leave["args"], "metadata": {"correlation_id": leave["correlation_id"]}}
    headers = {"Idempotency-Key": leave["idempotency_key"]}
    return httpx.post(f"{line.url}/refunds", json=body, headers=headers, trust_env=False).status_code


def _a_new_key_is_chosen(scene: Scene, line: Proxy, last: Body) -> None:
    """Only while absent is proven, and by people."""
    scene.time_passes()
    item = make.item_of(scene.attempt(last))
    for person in (scene.people.approver, scene.people.second_approver):
        decisions.approve(person, item.pk, why="it never happened", new_provider_key=True)
    fresh = scene.dispatched(last, worker="w9")
    assert fresh["idempotency_key"] != last["idempotency_key"]
    line.fault = lambda _, ask: ask()
    assert _send(scene, line, fresh) == 201
    told = scene.report(fresh, "succeeded", result_ref="re_new").json()
    assert (told["state"], scene.effects()) == ("OUTCOME_CONFIRMED", 1)
