"""The arguments of an attempt, as everything that judges, shows or sends them must read them."""

from __future__ import annotations

import json
from typing import Any

from ledger.models import Attempt
from ledger.rules.policy import Rule, summary_sentence


def stored_args(attempt: Attempt) -> dict[str, Any] | None:
    """What the stored bytes say, which is what was hashed; None for a hash-only intent."""
    if attempt.args_bytes is None:
        return None
    parsed: dict[str, Any] = json.loads(bytes(attempt.args_bytes))
    return parsed


def sentence_of(attempt: Attempt, rule: Rule | None) -> str:
    """What would be done, in words of the rule's template; masked values stay masked."""
    args = stored_args(attempt)
    if args is None:
        return f"{attempt.tool}: arguments known by their hash only"
    return (summary_sentence(rule, args) if rule else "") or attempt.tool
