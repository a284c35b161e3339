"""What a person has done with deliveries: rights asked, then the ledger's verb called, in one transaction.

Nothing here runs a tool. Each raises `NotVisible`, `NotPermitted` and `RedeliveryRefused` (the message is
written for a person).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from ledger import deliveries
from ledger.deliveries import RedeliveryRefused
from ledger.models import Delivery, Destination, User
from ledger.transactions import durable
from review.door import require_decider, to_write
from review.queries.dead_letters import DeadFilter, enter_dead_letters, frozen_ids
from review.queries.delivery import enter_delivery
from review.queries.redeliveries import enter_plan

__all__ = ["RedeliveryRefused", "cancel_plan", "give_up", "plan_redelivery", "redeliver", "require_planner"]


def redeliver(user: User, delivery_id: str, *, why: str) -> int:
    """Send the stored result once more, under its webhook id. Returns the number of its event."""
    return _as_decider(
        user, delivery_id, lambda: deliveries.redeliver(delivery_id=delivery_id, by=user, why=why)
    )


def give_up(user: User, delivery_id: str, *, why: str) -> int:
    """Dead-letter one that waits. Returns the number of its event."""
    return _as_decider(
        user, delivery_id, lambda: deliveries.give_up(delivery_id=delivery_id, by=user, why=why)
    )


def plan_redelivery(user: User, chosen: DeadFilter, *, until: datetime, why: str, rate_per_s: float) -> str:
    """Freeze the dead letters of one destination (and class of error) that were dead by `until`, when the
    person saw their count. Returns the plan's id."""

    def plan() -> str:
        destination, rights = to_write(lambda: enter_dead_letters(user, chosen))
        require_decider(destination.tenant, rights)
        made = deliveries.plan_redelivery(
            tenant_id=destination.tenant_id,
            delivery_ids=frozen_ids(chosen, until),
            by=user,
            why=why,
            rate_per_s=rate_per_s,
            chosen_by={
                "destination": chosen.destination,
                "error": chosen.error,
                "dead_until": until.isoformat(sep=" ", timespec="seconds"),
            },
        )
        return made.pk

    return durable(plan)


def require_planner(user: User, chosen: DeadFilter) -> Destination:
    """The destination of these dead letters, where this person decides work."""
    destination, rights = enter_dead_letters(user, chosen)
    require_decider(destination.tenant, rights)
    return destination


def cancel_plan(user: User, plan_id: str) -> None:
    """Stop a plan where it is. Raises `RedeliveryRefused` where it had ended."""

    def cancel() -> None:
        plan, rights = to_write(lambda: enter_plan(user, plan_id))
        require_decider(plan.tenant, rights)
        if not deliveries.cancel_plan(plan=plan, by=user):
            raise RedeliveryRefused("It had ended already.")

    durable(cancel)


def _as_decider(user: User, delivery_id: str, verb: Callable[[], Delivery]) -> int:
    def press() -> int:
        delivery, rights = to_write(lambda: enter_delivery(user, delivery_id))
        require_decider(delivery.tenant, rights)
        return verb().operation.event_count

    return durable(press)
