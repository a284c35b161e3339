"""What only the asynchronous twin can do: run beside others, be cancelled, move to another event loop."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ledger.client import AsyncLedger, AsyncOperation, current_async_operation, current_operation
from tests.ledger.client.fake import ARGS, Canned, FakeLedger, directive, leave


def block(ledger: AsyncLedger) -> AsyncOperation:
    return ledger.operation("invoice:7:send", tool="email.send", args=ARGS)


def run(ledger: AsyncLedger, work: Callable[[], Awaitable[None]]) -> None:
    async def and_close() -> None:
        try:
            await work()
        finally:
            await ledger.close()

    asyncio.run(and_close())


def test_tasks_side_by_side_each_have_their_own_operation(awaiting: AsyncLedger, fake: FakeLedger) -> None:
    async def one(key: str, both_in: asyncio.Barrier) -> None:
        async with awaiting.operation(key, tool="t", args=ARGS) as op:
            await both_in.wait()
            assert current_async_operation() is op
            await op.confirm(result_ref=key)

    async def two() -> None:
        both_in = asyncio.Barrier(2)
        await asyncio.gather(one("a", both_in), one("b", both_in))

    run(awaiting, two)
    assert {body["result_ref"] for body in fake.bodies("outcome")} == {"a", "b"}


def test_of_two_tasks_with_one_operation_one_sends(awaiting: AsyncLedger, fake: FakeLedger) -> None:
    op, sent = block(awaiting), list[str]()

    async def one() -> None:
        async with op:
            sent.append(op.idempotency_key)
            await op.confirm(result_ref="re_1")

    async def two() -> None:
        ended = await asyncio.gather(one(), one(), return_exceptions=True)
        assert min(map(repr, ended)) == "None"
        assert "entered once" in str(next(filter(None, ended)))

    run(awaiting, two)
    assert sent == ["il-key"]
    assert [path.rpartition("/")[2] for path in fake.paths()] == ["intents", "dispatch", "outcome"]


def test_a_cancelled_block_says_that_its_outcome_is_unknown(awaiting: AsyncLedger, fake: FakeLedger) -> None:
    async def cancelled() -> None:
        inside = asyncio.Event()

        async def hang() -> None:
            async with block(awaiting):
                inside.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(hang())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(awaiting, cancelled)
    said = {"class": "unknown", "message": "CancelledError"}
    assert [body["error"] for body in fake.bodies("outcome")] == [said]


class Gate:
    """What a task reaches, and what then waits in a thread until it may go on."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._reached = asyncio.Event()
        self._open = threading.Event()

    def hold(self) -> None:
        self._loop.call_soon_threadsafe(self._reached.set)
        self._open.wait(10)

    async def cancel_there(self, task: "asyncio.Task[None]") -> None:
        await self._reached.wait()
        await asyncio.sleep(0)
        task.cancel()
        self._open.set()
        with pytest.raises(asyncio.CancelledError):
            await task


async def confirm(op: AsyncOperation, before: Callable[[], object]) -> None:
    async with op:
        before()
        await op.confirm(result_ref="re_1")


def test_a_receipt_is_told_though_its_task_is_cancelled_while_the_disk_is_busy(
    fake: FakeLedger, tmp_path: Path
) -> None:
    ledger = AsyncLedger(fake.url, "ilk_1", "w", state_dir=tmp_path / "state")

    async def work() -> None:
        gate, loop = Gate(), asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        busy = lambda: loop.run_in_executor(None, gate.hold)  # noqa: E731
        await gate.cancel_there(asyncio.create_task(confirm(block(ledger), busy)))
        await ledger.deliver_reports()

    run(ledger, work)
    told = {(body["outcome"], body["result_ref"]) for body in fake.bodies("outcome")}
    assert told == {("succeeded", "re_1")}


def test_a_receipt_is_told_though_its_task_is_cancelled_while_the_ledger_is_busy(
    awaiting: AsyncLedger, fake: FakeLedger
) -> None:
    async def work() -> None:
        gate = Gate()
        fake.on("outcome", Canned(200, first=gate.hold))
        await gate.cancel_there(asyncio.create_task(confirm(block(awaiting), lambda: None)))

    run(awaiting, work)
    assert [body["outcome"] for body in fake.bodies("outcome")] == ["succeeded", "succeeded"]


def test_another_event_loop_gets_connections_of_its_own(awaiting: AsyncLedger, fake: FakeLedger) -> None:
    fake.on("r", Canned(200, headers={"Connection": "close"}))

    async def ask() -> None:
        await awaiting.get_run("r")

    asyncio.run(ask())
    run(awaiting, ask)
    assert len(fake.asked) == 2


def test_a_tool_is_awaited_and_then_not_called_again(awaiting: AsyncLedger, fake: FakeLedger) -> None:
    fake.on("intents", directive("dispatch"), directive("done", result_ref="re_0"))
    called: list[Any] = []

    @awaiting.tool("pay", key=lambda **args: f"pay:{args['to']}", keep_lease=True)
    async def pay(to: str, amount: int) -> dict[str, str]:
        await asyncio.sleep(0)
        called.append((to, amount, current_async_operation().correlation_id))
        return {"id": "re_1"}

    async def twice() -> None:
        assert [await pay("Ann", 500), await pay(to="Ann", amount=500)] == ["re_1", "re_0"]

    run(awaiting, twice)
    assert called == [("Ann", 500, "ilc-1")]


def test_the_twins_operations_are_not_taken_for_each_other(awaiting: AsyncLedger) -> None:
    async def inside() -> None:
        async with block(awaiting) as op:
            with pytest.raises(RuntimeError, match="no operation is running"):
                current_operation()
            await op.confirm(result_ref="re_1")
        with pytest.raises(RuntimeError, match="no operation is running"):
            current_async_operation()

    run(awaiting, inside)


def test_the_keeper_ends_with_the_block(awaiting: AsyncLedger, fake: FakeLedger) -> None:
    fake.on("dispatch", leave())

    async def kept() -> None:
        async with block(awaiting).keeping_lease() as op:
            await op.confirm(result_ref="re_1")
        await asyncio.sleep(0)
        assert [task.get_name() for task in asyncio.all_tasks() if task.get_name() == "ledger-lease"] == []

    run(awaiting, kept)
