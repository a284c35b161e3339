"""R52: three calls wait at once under the agent's own call id "1"; each answer is for exactly one of them.

Kind: answers told apart by a name that is not unique.
"""

from review import decisions
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.helping import publish
from tests.incidents.scene import Body, Scene
from tests.support import make
from tests.support.api import slug_of

ASKS = {"review": "always", "approvals": 1, "effect": "write"}
TOOLS: dict[str, Body] = {
    "book.room": {"room": "A"},
    "order.lunch": {"meals": 3},
    "send.invite": {"to": "all"},
}


def test_ids_come_from_the_ledger_and_answers_stay_where_they_were_given(scene: Scene) -> None:
    publish(scene, dict.fromkeys(TOOLS, ASKS))
    room, lunch, invite = (_asked(scene, "R1", tool) for tool in TOOLS)
    other_lunch = _asked(scene, "R2", "order.lunch")
    assert len({asked["attempt_id"] for asked in (room, lunch, invite, other_lunch)}) == 4
    scene.approve(lunch)
    decisions.reject(scene.people.operator, make.item_of(scene.attempt(room)).pk, why="no room needed")

    assert slug_of(scene.dispatch(room)) == "illegal-transition"
    assert slug_of(scene.dispatch(invite)) == "on-hold"
    assert slug_of(scene.dispatch(other_lunch)) == "on-hold"
    leave = scene.dispatched(lunch)
    assert leave["args"] == TOOLS["order.lunch"]
    scene.report(leave, "succeeded", result_ref="lunch-1")

    again = {tool: _asked(scene, "R1", tool)["directive"] for tool in TOOLS}
    assert again == {"book.room": "failed", "order.lunch": "done", "send.invite": "hold"}
    assert _asked(scene, "R2", "order.lunch")["directive"] == "hold"
    nothing_else_went_wrong(scene)


def test_a_second_call_of_the_same_place_and_content_is_a_twin(scene: Scene) -> None:
    """Two keys for what may be one call: held side by side, and an answer to one is none to the other."""
    publish(scene, {"order.lunch": {**ASKS, "review": "on_unknown"}})
    first = _asked(scene, "R1", "order.lunch")
    second = _asked(scene, "R1", "order.lunch", key="another")
    assert (second["state"], second["reason"]) == ("MANUAL_REVIEW", "suspected_duplicate")
    leave = scene.dispatched(first)
    assert slug_of(scene.dispatch(second)) == "on-hold"
    scene.report(leave, "succeeded", result_ref="lunch-1")
    assert slug_of(scene.dispatch(second)) == "on-hold"
    nothing_else_went_wrong(scene)


def _asked(scene: Scene, run: str, tool: str, *, key: str = "") -> Body:
    """The agent numbers its calls itself, and every run begins at 1."""
    named = key or f"{run}:{tool}"
    return scene.recorded(named, tool, TOOLS[tool], run=run, step="1", task_id="call-1")
