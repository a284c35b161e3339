"""The API's calls, one verb each, for programs that want them singly.

Each returns what the ledger answered or raises one of the four errors. Leave comes from `dispatch` alone.
"""

import math
import os
import secrets
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

from ledger.client.amounts import Amounts, Limits, written
from ledger.client.answers import (
    Answer,
    Leave,
    Lengthened,
    Reply,
    answer_of,
    check_no_problem,
    intent_answer_of,
    leave_of,
    lengthened_of,
    unreadable,
)
from ledger.client.delivery import Delivered, deliver_left, deliver_new, tell
from ledger.client.errors import LedgerError
from ledger.client.io import Address, Io
from ledger.client.lives import Life, Lives, lives_in
from ledger.client.records import Kept, Report
from ledger.client.transport import Transport
from ledger.client.twins import twin
from ledger.client.waiting import Post, Wait

Json = Mapping[str, Any]
LATER_S = 10.0
"""So much longer than it may wait an answer may take."""
NO_STATE_DIR = "there is no state_dir: set LEDGER_STATE_DIR, or pass state_dir"


@dataclass(frozen=True)
class Recovered:
    """What dead processes left: their reports, and what they were sending, by now UNKNOWN (`attempts`)."""

    reports: Delivered
    attempts: tuple[Json, ...]


class Calls:
    """The calls of one worker: `worker_id` names one life of one process."""

    io_kind: ClassVar[Any]

    def __init__(
        self,
        url: str,
        api_key: str,
        worker_id: str | None = None,
        *,
        timeout: float = 10.0,
        tries: int = 5,
        state_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        """`timeout`: seconds for one try of one call; `tries`: how often an unanswered call is made.

        `state_dir`: a directory on this machine, for one agent; its processes may share it. With it, no
        report is lost and a restart tells at once what it was that died: `worker_id` is then the first part
        of each life's own id.
        """
        io: Io = self.io_kind(Address(url, api_key, timeout))
        self._transport = Transport(io, tries=tries)
        self._given_worker_id = worker_id
        self._own_worker_id = ("", 0)
        self._lives: Lives | None = lives_in(os.fspath(state_dir), worker_id or "") if state_dir else None

    @property
    def worker_id(self) -> str:
        """The one given, or one drawn for this process; a forked process is another worker."""
        if self._lives is not None:
            return self._lives.mine().worker_id
        if self._given_worker_id:
            return self._given_worker_id
        if self._own_worker_id[1] != os.getpid():
            drawn = f"{socket.gethostname()[:60]}-{os.getpid()}-{secrets.token_hex(6)}"
            self._own_worker_id = (drawn, os.getpid())
        return self._own_worker_id[0]

    @property
    def clock(self) -> Callable[[], float]:
        """What the ends of leases are measured by: seconds, for spans."""
        return self._transport.io.monotonic_s

    @twin
    async def post_intent(
        self,
        operation_key: str,
        *,
        tool: str,
        args: Json | None = None,
        args_hash: str | None = None,
        run: str | None = None,
        step: str | None = None,
        task_id: str | None = None,
        actor: str | None = None,
        requested_by: str | None = None,
        retry_of: str | None = None,
        expires_at: str | None = None,
    ) -> Answer:
        """Write down what is meant to be done; nothing may be sent yet. `expires_at` is RFC 3339 UTC."""
        body = {
            "operation_key": operation_key,
            "tool": tool,
            "args": args,
            "args_hash": args_hash,
            "run": run,
            "step": step,
            "task_id": task_id,
            "actor": actor,
            "requested_by": requested_by,
            "retry_of": retry_of,
            "expires_at": expires_at,
        }
        return intent_answer_of(await self._post("/intents", body))

    @twin
    async def dispatch(self, attempt_id: str, *, args_hash: str, leave_id: str | None = None) -> Leave:
        """Ask for leave to send what hashes to `args_hash`. Report on the attempt that the leave names.

        A repetition with the same `leave_id` gets the same leave again; a new send needs a new one.
        """
        body = {"leave_id": leave_id or secrets.token_hex(16), "args_hash": args_hash}
        return leave_of(await self._post(_attempt(attempt_id, "dispatch"), body), asked_hash=args_hash)

    @twin
    async def heartbeat(
        self, attempt_id: str, *, lease_epoch: int, tries: int | None = None, timeout_s: float | None = None
    ) -> str:
        """Lengthen the lease of a long call. Returns `lease_until`; DuplicateOperation when it is lost."""
        how = {"tries": tries, "timeout_s": timeout_s}
        return (await self.lengthen(attempt_id, lease_epoch=lease_epoch, **how)).lease_until

    async def lengthen(self, attempt_id: str, *, lease_epoch: int, **how: Any) -> Lengthened:
        """As heartbeat, for a block, which also wants to know how long that is."""
        body = await self._signed({"lease_epoch": lease_epoch})
        return lengthened_of(
            await self._transport.call("POST", _attempt(attempt_id, "heartbeat"), body, **how)
        )

    @twin
    async def report_provider_request(
        self, attempt_id: str, provider_request_id: str, *, operation_key: str | None = None
    ) -> Answer:
        """Store the provider's own id of the request, the moment it is known."""
        body = {"provider_request_id": provider_request_id, "operation_key": operation_key}
        return await self._report(_attempt(attempt_id, "provider-request"), body)

    @twin
    async def report_outcome(
        self,
        attempt_id: str,
        outcome: str,
        *,
        result_ref: str | None = None,
        provider_request_id: str | None = None,
        no_effect: bool | None = None,
        retryable: bool | None = None,
        error_class: str | None = None,
        message: str = "",
        usage: Amounts | None = None,
        operation_key: str | None = None,
    ) -> Answer:
        """Say what became of it: succeeded, failed or unknown. The state that followed is in the answer.

        `operation_key` says what it is about to a ledger that does not know the attempt (any more); such a
        report is `parked` until its operation appears.
        """
        body = {
            "outcome": outcome,
            "result_ref": result_ref,
            "provider_request_id": provider_request_id,
            "no_effect": no_effect,
            "retryable": retryable,
            "error": None if error_class is None else {"class": error_class, "message": message},
            "usage": None if usage is None else written(usage),
            "operation_key": operation_key,
        }
        return await self._report(_attempt(attempt_id, "outcome"), body)

    @twin
    async def report_early_outcome(
        self,
        operation_key: str,
        outcome: str,
        *,
        result_ref: str | None = None,
        provider_request_id: str | None = None,
        args_hash: str | None = None,
        occurred_at: str | None = None,
    ) -> Answer:
        """Pass on what is known of an operation by its key alone, as from a provider's callback that may come
        before the intent. `args_hash` of what was sent; `occurred_at` is RFC 3339."""
        body = {
            "operation_key": operation_key,
            "outcome": outcome,
            "result_ref": result_ref,
            "provider_request_id": provider_request_id,
            "args_hash": args_hash,
            "occurred_at": occurred_at,
        }
        return await self._report("/outcomes", body)

    @twin
    async def cancel(self, operation_id: str, *, reason: str) -> Json:
        """Withdraw an operation; what is already sent is not undone."""
        return self._checked(
            await self._post(f"/operations/{_part(operation_id)}/cancel", {"reason": reason})
        )

    @twin
    async def get_operation(self, operation_id: str, *, wait_s: float | None = None) -> Json:
        """The operation with its attempts, deliveries and directive. `wait_s`: where there is nothing to do,
        the ledger may answer so much later (at most 30 s), as soon as that has changed; it need not."""
        path, late = f"/operations/{_part(operation_id)}", dict[str, Any]()
        if wait_s is not None:
            late = {"wait_s": math.ceil(wait_s), "timeout_s": wait_s + LATER_S, "tries": 1}
        return self._checked(await self._transport.call("GET", path, **late))

    @twin
    async def wait(self, post: Post, timeout_s: float) -> str:
        """Let up to so much time pass until `post`, made again, answers with something to do."""

        async def ask_late(operation_id: str, wait_s: float) -> object:
            return await Calls.get_operation(self, operation_id, wait_s=wait_s)

        return await Wait(self._transport.io, post=post, ask_late=ask_late).for_s(timeout_s)

    @twin
    async def find_operations(self, /, **wanted: str) -> Json:
        """One page of operations, by operation_key, state, outcome, tool, run, args_hash, cursor, limit."""
        return self._checked(await self._transport.call("GET", f"/operations?{urlencode(wanted)}"))

    @twin
    async def recover(self, worker_id: str) -> Json:
        """Say that this worker of the same agent is dead: what it was sending becomes UNKNOWN at once."""
        return self._checked(await self._transport.call("POST", "/recover", {"worker_id": worker_id}))

    @twin
    async def acknowledge(self, delivery_id: str, *, webhook_id: str, duplicate: bool = False) -> Json:
        """Say that a result was received, where the destination waits for this call (`ack: explicit`)."""
        body = {"webhook_id": webhook_id, "duplicate": duplicate}
        path = f"/deliveries/{_part(delivery_id)}/ack"
        return self._checked(await self._transport.call("POST", path, body))

    @twin
    async def put_run(self, run: str, *, limits: Limits | None = None) -> Json:
        """Open a run or find it again; limits count on creation only.

        Of tool_calls, turns and tokens whole numbers; of any unit of money an exact amount ("500.00"), or
        None: counted without a limit. A run that limits money allows the units it names and no others.
        """
        body = {"limits": written(limits or {})}
        return self._checked(await self._transport.call("PUT", f"/runs/{_part(run)}", body))

    @twin
    async def get_run(self, run: str) -> Json:
        return self._checked(await self._transport.call("GET", f"/runs/{_part(run)}"))

    @twin
    async def post_usage(self, run: str, *, usage_id: str, usage: Amounts) -> Json:
        """Book what was used; the same `usage_id` is counted once."""
        body = {"usage_id": usage_id, "usage": written(usage)}
        return self._checked(await self._transport.call("POST", f"/runs/{_part(run)}/usage", body))

    @twin
    async def put_checkpoint(self, run: str, *, sequence: int, reference: str, content_hash: str) -> Json:
        """Store where the run can go on from; `sequence` must be greater than the last."""
        body = {"sequence": sequence, "reference": reference, "content_hash": content_hash}
        return self._checked(await self._transport.call("PUT", f"/runs/{_part(run)}/checkpoint", body))

    @twin
    async def recover_at_start(self) -> Recovered:
        """Clear up after the processes that died here: deliver their reports, then declare them dead.

        Facts come first, so that what is known need not be found out. Needs `state_dir` (else RuntimeError).
        """
        lives = self._with_state_dir()
        reports, attempts = Delivered(), list[Json]()
        for life in lives.dead():
            try:
                reports += await deliver_left(self._transport, life)
                found = await Calls.recover(self, life.worker_id)
                attempts.extend(found.get("attempts", ()))
                await self._transport.io.on_disk(life.bury)
            finally:
                life.release()
        lives.caught_up = True
        return Recovered(reports, tuple(attempts))

    @twin
    async def deliver_reports(self) -> Delivered:
        """Post the reports of this process that could not be delivered. Needs `state_dir`."""
        return await deliver_left(self._transport, await self._life())

    @twin
    async def catch_up(self) -> None:
        """Before something new: what was left, so that the ledger knows it. Never in the way of the new."""
        if self._lives is None:
            return
        try:
            if not self._lives.caught_up:
                await Calls.recover_at_start(self)
            if (await self._life()).waiting:
                await Calls.deliver_reports(self)
        except LedgerError:
            return  # the new call meets the same trouble, and says so

    @twin
    async def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        await self._transport.io.close()

    async def _post(self, path: str, body: Json) -> Reply:
        return await self._transport.call("POST", path, await self._signed(body))

    async def _report(self, path: str, body: Json) -> Answer:
        """Post a fact; with a `state_dir` it is on the disk before it is posted."""
        report = Report(path, await self._signed(body))
        kept = await self._kept(report)
        if kept is None:
            return answer_of((await tell(self._transport, report)).reply)
        life = await self._life()
        try:
            return answer_of(await deliver_new(self._transport, life, kept))
        except LedgerError as error:
            error.about = replace(error.about, kept=life.has_left(kept))
            raise

    async def _kept(self, report: Report) -> Kept | None:
        """The report on the disk; None without a `state_dir`, or where the disk refuses."""
        if self._lives is None:
            return None
        life = await self._life()
        try:
            return await self._transport.io.on_disk(lambda: life.keep(report))
        except OSError:
            return None

    async def _signed(self, body: Json) -> Json:
        said = {name: value for name, value in body.items() if value is not None}
        return {"worker_id": await self._who(), **said}

    async def _who(self) -> str:
        return self.worker_id if self._lives is None else (await self._life()).worker_id

    async def _life(self) -> Life:
        """This process's life. Raises LedgerUnavailable: what cannot be remembered is not begun."""
        lives = self._with_state_dir()
        try:
            return await self._transport.io.on_disk(lives.mine)
        except OSError as error:
            raise unreadable(f"the state directory {lives.directory} cannot be used: {error}") from error

    def _with_state_dir(self) -> Lives:
        if self._lives is None:
            raise RuntimeError(NO_STATE_DIR)
        return self._lives

    @staticmethod
    def _checked(reply: Reply) -> Json:
        check_no_problem(reply)
        return reply.body


def _attempt(attempt_id: str, call: str) -> str:
    return f"/attempts/{_part(attempt_id)}/{call}"


def _part(name: str) -> str:
    """One part of a path. An empty or dotted one would address something else."""
    if name in {"", ".", ".."}:
        raise ValueError(f"{name!r} names nothing")
    return quote(name, safe="")
