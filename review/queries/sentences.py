"""The human sentence of an attempt, from its stored bytes only."""

from __future__ import annotations

import json
from typing import Any

from ledger.models import Attempt
from ledger.policies import policy_of
from ledger.rules.policy import Rule, summary_sentence

HASH_ONLY = "arguments known by their hash only"


def args_of(attempt: Attempt) -> dict[str, Any] | None:
    """The arguments as the stored bytes say them; None for a hash-only intent."""
    if attempt.args_bytes is None:
        return None
    parsed: dict[str, Any] = json.loads(bytes(attempt.args_bytes))
    return parsed


def sentence_of(attempt: Attempt, rule: Rule | None) -> str:
    """What would be done, in words of the rule's template; masked values stay masked."""
    args = args_of(attempt)
    if args is None:
        return f"{attempt.tool}: {HASH_ONLY}"
    return (summary_sentence(rule, args) if rule else "") or attempt.tool


def own_rule(attempt: Attempt) -> Rule | None:
    """The rule an attempt is under."""
    return policy_of(attempt.policy).rule_for(attempt.tool)
