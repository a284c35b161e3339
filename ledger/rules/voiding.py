"""Why a yes no longer counts: what it was bound to has changed since it was given. The first row that holds
speaks; expiry is no change and not asked here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

EDITED_LATELY = timedelta(hours=24)
"""So long an edit of arguments or rule keeps its author from approving a dangerous effect, whoever edited
after them."""


class VoidCause(StrEnum):
    """What changed, in the words that history and pages share."""

    ARGUMENTS = "arguments changed"
    RULE = "rule changed"
    TENANT = "tenant suspended"
    SCOPE = "scope changed"
    CANCELLED = "operation cancelled"
    HAPPENED = "may have happened"
    RIGHT = "approver lost the right"
    CONFLICT = "approver in conflict"


@dataclass(frozen=True)
class VoteNow:
    """One yes against what holds now.

    `digest_equal`: all that it was bound to, beside rule and scopes. `rule_stands`: the tool's rule is the
    one it was given under, and was so all the time. `covered`: a live key of the agent covers tool and
    target, and the attempt's scopes are those it was bound to. `happened`: an attempt of the operation is
    confirmed.
    """

    digest_equal: bool
    rule_stands: bool
    tenant_active: bool
    covered: bool
    cancelled: bool
    happened: bool
    permitted: bool
    in_conflict: bool


def why_void(vote: VoteNow) -> VoidCause | None:
    """The first change that ends this yes; None while it stands."""
    return next((cause for cause, holds in ROWS if holds(vote)), None)


ROWS: tuple[tuple[VoidCause, Callable[[VoteNow], bool]], ...] = (
    (VoidCause.ARGUMENTS, lambda vote: not vote.digest_equal),
    (VoidCause.RULE, lambda vote: not vote.rule_stands),
    (VoidCause.TENANT, lambda vote: not vote.tenant_active),
    (VoidCause.SCOPE, lambda vote: not vote.covered),
    (VoidCause.CANCELLED, lambda vote: vote.cancelled),
    (VoidCause.HAPPENED, lambda vote: vote.happened),
    (VoidCause.RIGHT, lambda vote: not vote.permitted),
    (VoidCause.CONFLICT, lambda vote: vote.in_conflict),
)

STALE = frozenset({VoidCause.ARGUMENTS, VoidCause.RULE, VoidCause.TENANT, VoidCause.SCOPE})
"""Leave answers these as `approval-stale`."""
OF_APPROVER = frozenset({VoidCause.RIGHT, VoidCause.CONFLICT})
"""Leave answers these as `approver-refused`."""
