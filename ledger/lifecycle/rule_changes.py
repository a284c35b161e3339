"""What a changed policy means for an attempt that was never sent."""

from __future__ import annotations

from ledger.lifecycle.case import Case
from ledger.lifecycle.moves import move
from ledger.models import Attempt
from ledger.policies import InForce
from ledger.queries.arguments import stored_args
from ledger.rules.authority import Reason
from ledger.rules.costs import cost_problem
from ledger.rules.policy import Rule
from ledger.rules.states import State
from ledger.rules.vocabulary import EventKind, ReviewReason


def follow_rule(case: Case, attempt: Attempt, in_force: InForce) -> tuple[Reason, ...]:
    """Bring an INTENT_RECORDED attempt that was never held under the rule in force.

    The new rule lets it go: re-linked. It wants review, or what the arguments do not have (`is_sendable`):
    held. It forbids the tool: the reasons are returned and nothing changes. What was sent or ever held keeps
    its rule.
    """
    if attempt.state != State.INTENT_RECORDED or attempt.held_at or in_force.rule_hash == attempt.rule_hash:
        return ()
    if in_force.rule is None or in_force.snapshot is None:
        return (Reason.POLICY_REFUSED,)
    if in_force.rule.review == "always" or not is_sendable(case, attempt, in_force.rule):
        hold(case, attempt, ReviewReason.POLICY_CHANGED)
        return ()
    before = attempt.rule_hash
    case.change(attempt, policy=in_force.snapshot, rule_hash=in_force.rule_hash)
    case.record(
        EventKind.RULE_RELINKED,
        attempt,
        before=before,
        rule_hash=attempt.rule_hash,
        policy=in_force.snapshot.version,
    )
    return ()


def is_sendable(case: Case, attempt: Attempt, rule: Rule) -> bool:
    """The ledger sends stored arguments, of which a hash-only intent has none; and what a rule takes from the
    run's budget must be readable in them."""
    if rule.executor == "ledger" and attempt.args_bytes is None:
        return False
    return case.operation.run_id is None or not cost_problem(rule, stored_args(attempt))


def hold(case: Case, attempt: Attempt, reason: ReviewReason) -> None:
    """A person before anything is sent; from now on every send of it is a send with approval."""
    move(case, attempt, State.MANUAL_REVIEW, reason=reason, held_at=attempt.held_at or case.now)
