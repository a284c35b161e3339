"""Separation of duties: who must not approve a send because it is theirs. Nobody is exempt."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from ledger.approvals import Duty, duties_in
from ledger.models import Attempt

WORDS: Mapping[Duty, str] = {
    Duty.OWNS_AGENT: "You own the agent that asks for this.",
    Duty.ASKED: "You asked for this.",
    Duty.CORRECTED: "You corrected these arguments last.",
    Duty.CHANGED_RULE: "You published the rule this would be sent under.",
    Duty.CORRECTED_LATELY: "You edited arguments of this operation within the last 24 h.",
    Duty.CHANGED_RULE_LATELY: "You edited the rule of this tool within the last 24 h.",
}


def conflicts(attempt: Attempt, *, now: datetime) -> Mapping[int, str]:
    """User id → why this person cannot approve this attempt, in words to show them."""
    duties = reversed(duties_in(attempt, now=now))
    return {user_id: WORDS[duty] for user_id, duty in duties if user_id is not None}
