"""R30: 202 is neither success nor failure, and a library makes an error of it.

Kind: an answer that means "not known yet". The reference is kept at once, nothing is confirmed and nothing
fails, nobody sends again, and the provider is asked until it says. Where our rules decide otherwise than the
report asked: when the send lease ends the attempt is UNKNOWN, not DISPATCHED; and an answer "in progress"
counts toward `max_checks`, after which a person is asked, though never as a failed look-up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import httpx
import pytest

from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import FOUND, IN_PROGRESS, RULES, Body, Scene
from tests.support import make
from tests.support.api import slug_of

Accepted = Callable[[Scene, Body, str], httpx.Response]

SAID: Mapping[str, Accepted] = {
    "request id": lambda scene, leave, reference: scene.accepted(leave, reference),
    "unknown with it": lambda scene, leave, reference: scene.report(
        leave, "unknown", provider_request_id=reference
    ),
}


@pytest.mark.parametrize(("then", "state"), [(FOUND, "OUTCOME_CONFIRMED"), ("failed", "FAILED")])
@pytest.mark.parametrize("said", SAID)
def test_it_is_asked_about_until_the_provider_says(scene: Scene, said: str, then: str, state: str) -> None:
    leave, reference = scene.sent()
    assert reference is not None
    assert SAID[said](scene, leave, reference).status_code == 200
    assert scene.attempt(leave).provider_request_id == reference
    scene.leases_run_out()
    for _ in range(3):
        scene.time_passes()
        scene.asks(IN_PROGRESS)
        attempt = scene.attempt(leave)
        assert (attempt.state, attempt.lookup_failures) == ("UNKNOWN", 0)
        again = scene.intent()
        assert (again.json()["directive"], slug_of(scene.dispatch(leave, worker="w2"))) == (
            "reconcile",
            "in-flight",
        )
    scene.time_passes()
    scene.asks(then)
    assert scene.state(leave) == state
    assert scene.intent().json()["directive"] == ("done" if state == "OUTCOME_CONFIRMED" else "failed")
    assert scene.effects() == 1
    nothing_else_went_wrong(scene)


def test_while_the_lease_runs_it_is_in_flight(scene: Scene) -> None:
    leave, reference = scene.sent()
    assert reference is not None
    told = scene.accepted(leave, reference).json()
    assert (told["state"], told["directive"], told["result_ref"]) == ("DISPATCHED", "in_flight", None)
    assert scene.recover() == 0
    nothing_else_went_wrong(scene)


def test_accepted_reported_as_success_without_a_reference_confirms_nothing(scene: Scene) -> None:
    leave, _ = scene.sent()
    told = scene.report(leave, "succeeded").json()
    assert (told["state"], told["directive"]) == ("UNKNOWN", "reconcile")
    scene.asks(FOUND)
    assert scene.attempt(leave).confirmed_by == "lookup"
    nothing_else_went_wrong(scene)


def test_what_stays_in_progress_for_ever_comes_to_a_person(scene: Scene) -> None:
    make.policy(
        scene.people.tenant, tools={**RULES, "payment.create": {**RULES["payment.create"], "max_checks": 3}}
    )
    unknown = scene.unknown()
    for _ in range(4):
        scene.time_passes()
        scene.asks(IN_PROGRESS)
    attempt = scene.attempt(unknown)
    assert (attempt.state, attempt.reason) == ("MANUAL_REVIEW", "unresolved")
    assert scene.all_effects() == 1
    nothing_else_went_wrong(scene)


def test_a_reference_in_hand_makes_absent_a_contradiction(scene: Scene) -> None:
    """Accepted and then nowhere to be found is not proof that it never was."""
    leave = scene.dispatched()
    scene.accepted(leave, "re_lost")
    scene.leases_run_out()
    scene.asks_until_settled()
    attempt = scene.attempt(leave)
    assert (attempt.state, attempt.reason) == ("MANUAL_REVIEW", "conflicting_evidence")
    assert scene.all_effects() == 0
    nothing_else_went_wrong(scene)
