"""What one vote is bound to, as one digest: a vote given for anything else is no vote."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from ledger.rules.canonical import canonical_bytes, content_hash


def vote_digest(
    *,
    tenant: str,
    operation: str,
    attempt: str,
    tool: str,
    args_hash: str,
    rule_hash: str,
    scopes: Iterable[str],
    generation: int,
    approver: str,
    meaning: str,
    expires_at: datetime,
) -> str:
    """`v1:sha256:…` over everything the approver was shown and may be held to.

    `rule_hash` is that of the current policy, `meaning` the sentence as shown, `scopes` a set (order and
    repeats do not matter). Raises ValueError where `expires_at` is naive: a time without an offset binds
    nothing.
    """
    bound = {
        "tenant": tenant,
        "operation": operation,
        "attempt": attempt,
        "tool": tool,
        "args_hash": args_hash,
        "rule_hash": rule_hash,
        "scopes": sorted(set(scopes)),
        "generation": generation,
        "approver": approver,
        "meaning": meaning,
        "expires_at": _utc_text(expires_at),
    }
    return content_hash(canonical_bytes(bound))


def _utc_text(moment: datetime) -> str:
    if moment.utcoffset() is None:
        raise ValueError("an expiry without an offset cannot be bound")
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
