"""Separation of duties: who must not approve a send because it is theirs. Nobody is exempt."""

from __future__ import annotations

from collections.abc import Mapping

from ledger.models import Attempt
from ledger.policies import rule_editor


def conflicts(attempt: Attempt) -> Mapping[int, str]:
    """User id → why this person cannot approve this attempt, in words to show them."""
    duties = (
        (attempt.agent.owner_id, "You own the agent that asks for this."),
        (attempt.requested_by_id, "You asked for this."),
        (attempt.arguments_by_id, "You corrected these arguments last."),
        (rule_editor(attempt.tenant_id, attempt.tool), "You published the rule this would be sent under."),
    )
    return {user_id: words for user_id, words in reversed(duties) if user_id is not None}
