"""R49: the framework itself calls the tool twice, at once, in a row, or in a retry of the whole task.

Kind: a caller that calls twice.
"""

from contextlib import AbstractContextManager, closing
from functools import partial
from typing import Any

from ledger.client import DuplicateOperation, Ledger, current_operation
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import ARGS, PAYMENT, Scene, key_for
from tests.support.api import slug_of
from tests.support.races import at_once

KEY = "order:9:charge"


def test_leave_is_given_to_one_of_those_who_ask(scene: Scene) -> None:
    intent = scene.recorded()
    answers = at_once(*[partial(scene.dispatch, intent, worker=f"w{n}") for n in range(6)])
    given = [answer for answer in answers if answer.status_code == 200]
    assert len(given) == 1
    assert {slug_of(answer) for answer in answers if answer.status_code != 200} == {"in-flight"}
    leave = given[0].json()
    reference = scene.send(leave)
    scene.report(leave, "succeeded", result_ref=reference)
    again = scene.recorded()
    assert (again["directive"], again["result_ref"], again["attempt_id"]) == (
        "done",
        reference,
        leave["attempt_id"],
    )
    assert slug_of(scene.dispatch(again, worker="w7")) == "already-done"
    assert scene.effects() == 1
    nothing_else_went_wrong(scene)


def test_a_wrapped_tool_runs_once_however_often_it_is_called(scene: Scene) -> None:
    called: list[dict[str, Any]] = []

    def wrapped(ledger: Ledger) -> Any:
        @ledger.tool(PAYMENT, key=lambda **_: KEY)
        def charge(**args: Any) -> str:
            called.append(args)
            scene.sent_by_agents += 1
            op = current_operation()
            body = {**args, "metadata": {"correlation_id": op.correlation_id}}
            return str(scene.provider.send("refunds", body, key=op.idempotency_key)["id"])

        return charge

    with _life(scene, "w1") as one, _life(scene, "w2") as another:
        first, second = wrapped(one), wrapped(another)
        answers = at_once(lambda: _call(first), lambda: _call(second))
        assert len(called) == 1
        done = next(answer for answer in answers if isinstance(answer, str))
        assert all(answer == done or isinstance(answer, DuplicateOperation) for answer in answers)
        assert [first(**ARGS[PAYMENT]), second(**ARGS[PAYMENT])] == [done, done], "a retry of the task"
    assert (called, scene.effects(KEY)) == ([ARGS[PAYMENT]], 1)
    nothing_else_went_wrong(scene)


def _life(scene: Scene, name: str) -> AbstractContextManager[Ledger]:
    """One process of the agent."""
    return closing(Ledger(scene.server.address, key_for(scene.people.agent), name))


def _call(tool: Any) -> Any:
    try:
        return tool(**ARGS[PAYMENT])
    except DuplicateOperation as told:
        return told
