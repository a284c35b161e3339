"""The API's calls, one method each, for programs that want them singly.

Each returns what the ledger answered or raises one of the four errors. Leave comes from `dispatch` alone.
"""

import os
import secrets
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from ledger.client.answers import (
    Answer,
    Leave,
    Reply,
    answer_of,
    check_no_problem,
    intent_answer_of,
    leave_of,
)
from ledger.client.transport import Transport

Json = Mapping[str, Any]


class Calls:
    """The calls of one worker: `worker_id` names one life of one process."""

    def __init__(
        self,
        url: str,
        api_key: str,
        worker_id: str | None = None,
        *,
        timeout: float = 10.0,
        tries: int = 5,
    ) -> None:
        """`timeout`: seconds for one try of one call; `tries`: how often an unanswered call is made."""
        self._transport = Transport(url, api_key, timeout=timeout, tries=tries)
        self._given_worker_id = worker_id
        self._own_worker_id = ("", 0)

    @property
    def worker_id(self) -> str:
        """The one given, or one drawn for this process; a forked process is another worker."""
        if self._given_worker_id:
            return self._given_worker_id
        if self._own_worker_id[1] != os.getpid():
            drawn = f"{socket.gethostname()[:60]}-{os.getpid()}-{secrets.token_hex(6)}"
            self._own_worker_id = (drawn, os.getpid())
        return self._own_worker_id[0]

    def post_intent(
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
        return intent_answer_of(self._post("/intents", body))

    def dispatch(self, attempt_id: str, *, args_hash: str, leave_id: str | None = None) -> Leave:
        """Ask for leave to send what hashes to `args_hash`. Report on the attempt that the leave names.

        A repetition with the same `leave_id` gets the same leave again; a new send needs a new one.
        """
        body = {"leave_id": leave_id or secrets.token_hex(16), "args_hash": args_hash}
        return leave_of(self._post(_attempt(attempt_id, "dispatch"), body), asked_hash=args_hash)

    def heartbeat(self, attempt_id: str, *, lease_epoch: int) -> str:
        """Lengthen the lease of a long call. Returns `lease_until`; DuplicateOperation when it is lost."""
        reply = self._post(_attempt(attempt_id, "heartbeat"), {"lease_epoch": lease_epoch})
        return str(self._checked(reply).get("lease_until", ""))

    def report_provider_request(self, attempt_id: str, provider_request_id: str) -> Answer:
        """Store the provider's own id of the request, the moment it is known."""
        body = {"provider_request_id": provider_request_id}
        return answer_of(self._post(_attempt(attempt_id, "provider-request"), body))

    def report_outcome(
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
        usage: Mapping[str, int] | None = None,
    ) -> Answer:
        """Say what became of it: succeeded, failed or unknown. The state that followed is in the answer."""
        body = {
            "outcome": outcome,
            "result_ref": result_ref,
            "provider_request_id": provider_request_id,
            "no_effect": no_effect,
            "retryable": retryable,
            "error": None if error_class is None else {"class": error_class, "message": message},
            "usage": usage,
        }
        return answer_of(self._post(_attempt(attempt_id, "outcome"), body))

    def cancel(self, operation_id: str, *, reason: str) -> Json:
        """Withdraw an operation; what is already sent is not undone."""
        return self._checked(self._post(f"/operations/{_part(operation_id)}/cancel", {"reason": reason}))

    def get_operation(self, operation_id: str) -> Json:
        """The operation with its attempts, deliveries and directive."""
        return self._checked(self._transport.call("GET", f"/operations/{_part(operation_id)}"))

    def find_operations(self, **wanted: str) -> Json:
        """One page of operations, by operation_key, state, outcome, tool, run, args_hash, cursor, limit."""
        return self._checked(self._transport.call("GET", f"/operations?{urlencode(wanted)}"))

    def recover(self, worker_id: str) -> Json:
        """Say that this worker of the same agent is dead: what it was sending becomes UNKNOWN at once."""
        return self._checked(self._transport.call("POST", "/recover", {"worker_id": worker_id}))

    def put_run(self, run: str, *, limits: Mapping[str, int] | None = None) -> Json:
        """Open a run or find it again; limits (tool_calls, turns, tokens) count on creation only."""
        return self._checked(self._transport.call("PUT", f"/runs/{_part(run)}", {"limits": limits or {}}))

    def get_run(self, run: str) -> Json:
        return self._checked(self._transport.call("GET", f"/runs/{_part(run)}"))

    def post_usage(self, run: str, *, usage_id: str, usage: Mapping[str, int]) -> Json:
        """Book what was used; the same `usage_id` is counted once."""
        body = {"usage_id": usage_id, "usage": dict(usage)}
        return self._checked(self._transport.call("POST", f"/runs/{_part(run)}/usage", body))

    def put_checkpoint(self, run: str, *, sequence: int, reference: str, content_hash: str) -> Json:
        """Store where the run can go on from; `sequence` must be greater than the last."""
        body = {"sequence": sequence, "reference": reference, "content_hash": content_hash}
        return self._checked(self._transport.call("PUT", f"/runs/{_part(run)}/checkpoint", body))

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        self._transport.close()

    def _post(self, path: str, body: Json) -> Reply:
        said = {name: value for name, value in body.items() if value is not None}
        return self._transport.call("POST", path, {"worker_id": self.worker_id, **said})

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
