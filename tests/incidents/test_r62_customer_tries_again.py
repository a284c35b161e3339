"""R62: the charge went through, the shop broke, and the customer tries again.

Kind: a repetition from outside, which looks like something new.
"""

import json

import pytest

from ledger.reconciliation import sweep_once
from tests.crash.world import Agent
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.helping import publish
from tests.incidents.scene import ARGS, MAIL, PAYMENT, RESOURCES, Body, Scene, key_for
from tests.support.api import slug_of
from tests.support.processes import wait_until

KEY = "order:9:charge"
PLACE: Body = {"run": "checkout-9", "step": "charge"}


def killed_after_the_providers_success(scene: Scene, tool: str) -> None:
    """K3, with a real process and a real SIGKILL."""
    scene.sent_by_agents += 1
    agent = Agent(
        {
            "LEDGER_URL": scene.server.address,
            "LEDGER_API_KEY": key_for(scene.people.agent),
            "PROVIDER_URL": scene.provider.url,
            "OPERATION_KEY": KEY,
            "TOOL": tool,
            "RESOURCE": RESOURCES[tool],
            "ARGS": json.dumps(ARGS[tool]),
            "STOP_AT": "answered",
        }
    )
    agent.says()
    assert agent.says()["at"] == "answered"
    agent.kill()


@pytest.mark.parametrize("tool", [PAYMENT, MAIL])
def test_the_same_business_key_is_told_to_wait_and_then_the_result(scene: Scene, tool: str) -> None:
    publish(scene, {tool: {"dispatch_timeout_s": 0.5}})
    killed_after_the_providers_success(scene, tool)
    first = scene.recorded(KEY, tool)
    assert first["directive"] in ("in_flight", "reconcile")
    wait_until(
        lambda: bool(sweep_once().leases) or scene.state(first) == "UNKNOWN", within_s=20, what="UNKNOWN"
    )
    told = scene.intent(KEY, tool)
    assert (told.json()["state"], told.json()["directive"]) == ("UNKNOWN", "reconcile")
    assert (told.json()["attempt_id"], told.status_code) == (first["attempt_id"], 200)
    assert told.json()["review_url"]
    assert int(told.headers["Retry-After"]) >= 1
    assert slug_of(scene.dispatch(first, worker="R2")) == "in-flight"
    scene.time_passes()
    scene.recover()
    done = scene.recorded(KEY, tool)
    assert (done["directive"], done["result_ref"] is not None, scene.effects(KEY)) == ("done", True, 1)
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize("tool", [PAYMENT, MAIL])
def test_a_random_key_for_the_same_place_and_content_is_held(scene: Scene, tool: str) -> None:
    lost = scene.unknown(KEY, tool=tool, **PLACE)
    again = scene.recorded("7f3a-random", tool, **PLACE)
    assert (again["state"], again["reason"], again["directive"]) == (
        "MANUAL_REVIEW",
        "suspected_duplicate",
        "hold",
    )
    assert slug_of(scene.dispatch(again, worker="R2")) == "on-hold"
    scene.time_passes()
    scene.recover()
    assert (scene.state(lost), scene.state(again)) == ("OUTCOME_CONFIRMED", "MANUAL_REVIEW")
    assert (scene.effects(KEY), scene.effects("7f3a-random")) == (1, 0)
    nothing_else_went_wrong(scene)
