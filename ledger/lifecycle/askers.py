"""Who may ask for leave: an agent with one of its keys, or the ledger itself for an agent's attempt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ledger.authority import as_stored, keys_of, usable_keys
from ledger.events import SENDER, Actor, agent_actor
from ledger.lifecycle.case import Case
from ledger.models import ApiKey, Attempt


@dataclass(frozen=True)
class Asker:
    """One process that asks for one send. `executor`: whose sends it makes, in the words of a rule."""

    executor: str
    actor: Actor
    tenant_id: int | None
    worker_id: str
    leave_id: str
    key: ApiKey | None = None
    args_hash: str | None = None

    def keys(self, attempt: Attempt) -> Sequence[ApiKey]:
        """The keys that speak for the send, as they are stored now: the locks may have taken a while."""
        return [as_stored(self.key)] if self.key is not None else keys_of(attempt.agent)

    def is_holder(self, attempt: Attempt) -> bool:
        """Is this the life that was given leave for the attempt?"""
        same_agent = self.key is None or self.key.agent_id == attempt.agent_id
        return same_agent and (attempt.worker_id, attempt.leave_id) == (self.worker_id, self.leave_id)


def agent_asks(*, key: ApiKey, worker_id: str, leave_id: str, args_hash: str) -> Asker:
    """An agent, that says what it is going to send. The worker stands in for a missing leave id."""
    return Asker(
        executor="agent",
        actor=agent_actor(key.agent),
        tenant_id=key.tenant_id,
        worker_id=worker_id,
        leave_id=leave_id or worker_id,
        key=key,
        args_hash=args_hash,
    )


def ledger_asks(*, worker_id: str, leave_id: str) -> Asker:
    """The ledger, that sends what is stored and nothing else."""
    return Asker(executor="ledger", actor=SENDER, tenant_id=None, worker_id=worker_id, leave_id=leave_id)


def credentials(
    case: Case, attempt: Attempt, asker: Asker, keys: Sequence[ApiKey]
) -> tuple[set[str], dict[str, Any]]:
    """The scopes that a send rests on, and whose they are, as the history says it. Of an agent the key that
    asks; of the ledger all keys of the agent that are live and cover the send."""
    if asker.key is not None:
        return set(keys[0].scopes), {"key": keys[0].key_id}
    usable = usable_keys(attempt, keys, case.now)
    return {scope for key in usable for scope in key.scopes}, {"keys": [key.key_id for key in usable]}
