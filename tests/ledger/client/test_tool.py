"""The decorator: called with what leave returned, or not called and the earlier result returned."""

from types import SimpleNamespace
from typing import Any

import pytest

from ledger.client import DefiniteFailure, Ledger, PendingReview, current_async_operation, current_operation
from ledger.client.agent import reference_in
from tests.ledger.client.driven import Driven
from tests.ledger.client.fake import ARGS, OTHER_ARGS, OTHER_HASH, FakeLedger, directive, leave, problem


def at_hand(ledger: object) -> Any:
    """The running operation, asked for as this twin's tools do."""
    return current_async_operation() if isinstance(ledger, Driven) else current_operation()


def key(**args: Any) -> str:
    return f"pay:{args['to']}"


def test_a_tool_is_called_with_the_arguments_of_leave(ledger: Ledger, fake: FakeLedger) -> None:
    fake.on("dispatch", problem(409, "args-changed", args=OTHER_ARGS))
    fake.on("dispatch", leave(args=OTHER_ARGS, args_hash=OTHER_HASH))
    called = []

    @ledger.tool("pay", key=key, run="r1", step=lambda **args: f"step {args['amount']}")
    def pay(**args: Any) -> str:
        called.append((args, at_hand(ledger).idempotency_key))
        return "re_1"

    assert pay(**ARGS) == "re_1"
    assert called == [(OTHER_ARGS, "il-key")]
    intent = fake.bodies("intents")[0]
    assert (intent["operation_key"], intent["tool"], intent["args"]) == ("pay:Ann", "pay", ARGS)
    assert (intent["run"], intent["step"]) == ("r1", "step 500")
    assert fake.bodies("outcome")[0]["result_ref"] == "re_1"


def test_done_returns_the_earlier_result_and_calls_nothing(ledger: Ledger, fake: FakeLedger) -> None:
    fake.on("intents", directive("done", result_ref="re_0"))

    @ledger.tool("pay", key=key)
    def pay(**args: Any) -> str:
        pytest.fail("called again")

    assert pay(**ARGS) == "re_0"


def test_a_held_call_is_not_made(ledger: Ledger, fake: FakeLedger) -> None:
    fake.on("intents", directive("hold", 202))

    @ledger.tool("pay", key=key)
    def pay(**args: Any) -> str:
        pytest.fail("called")

    with pytest.raises(PendingReview):
        pay(**ARGS)


def test_defaults_are_recorded_too(ledger: Ledger, fake: FakeLedger) -> None:
    fake.on("dispatch", problem(403, "policy-refused"))

    @ledger.tool("pay", key=key)
    def pay(to: str, amount: int = 5, **more: str) -> str:
        return f"{to}{amount}{more}"

    with pytest.raises(Exception, match="policy-refused"):
        pay("Ann", note="x")
    assert fake.bodies("intents")[0]["args"] == {"to": "Ann", "amount": 5, "note": "x"}


def test_a_failure_is_stated_from_inside(ledger: Ledger, fake: FakeLedger) -> None:
    @ledger.tool("pay", key=key)
    def pay(**args: Any) -> str:
        raise DefiniteFailure("declined")

    with pytest.raises(DefiniteFailure):
        pay(**ARGS)
    assert fake.bodies("outcome")[0]["outcome"] == "failed"


def test_arguments_must_have_names(ledger: Ledger) -> None:
    with pytest.raises(TypeError, match="by name"):

        @ledger.tool("pay", key=key)
        def pay(*args: int) -> str:
            return str(args)


@pytest.mark.parametrize(
    ("returned", "reference"),
    [("re_1", "re_1"), ({"id": "re_1"}, "re_1"), ({"id": 7}, "7"), (SimpleNamespace(id="re_1"), "re_1")]
    + [(nothing, None) for nothing in (None, "", {}, {"id": None}, 5, ["re_1"], SimpleNamespace(id=object()))]
    + [(unfit, None) for unfit in ("Sent.\nOK", "x" * 1001, "a\u202eb", {"id": "\ud800"})],
)
def test_where_the_reference_is_found(returned: object, reference: str | None) -> None:
    assert reference_in(returned) == reference
