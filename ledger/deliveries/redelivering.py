"""Redelivery by people: one, or a frozen plan of many. The stored result goes out again; no tool runs."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from ledger.approvals import may_decide
from ledger.deliveries.holding import locked_delivery
from ledger.deliveries.moves import dead_letter, send_again
from ledger.events import operator_actor
from ledger.models import Delivery, PlannedRedelivery, RedeliveryPlan, User
from ledger.rules.deliveries import DeadReason
from ledger.rules.states import DeliveryState
from ledger.transactions import Busy, database_clock, durable, require_transaction

logger = logging.getLogger(__name__)

MOST_IN_A_PLAN = 10_000
MOST_PLANS = 100
RATES_PER_S = (0.001, 1_000.0)


class RedeliveryRefused(Exception):
    """It cannot be sent again, or given up, as it stands; the message is written for a person."""


def redeliver(*, delivery_id: str, by: User, why: str) -> Delivery:
    """Send one again under its webhook id. One that is still being tried needs nobody's word."""
    require_transaction()
    delivery = _locked(delivery_id)
    if delivery.state not in {DeliveryState.ACKED, DeliveryState.DEAD_LETTERED}:
        raise RedeliveryRefused("It is still being tried; its next try is on the page.")
    send_again(delivery, actor=operator_actor(by), now=database_clock(), why=why)
    return delivery


def give_up(*, delivery_id: str, by: User, why: str) -> Delivery:
    """Dead-letter one that is still waiting."""
    require_transaction()
    delivery = _locked(delivery_id)
    if delivery.state not in {DeliveryState.PENDING, DeliveryState.SENT}:
        raise RedeliveryRefused(f"It is {delivery.state} and waits for nothing.")
    dead_letter(delivery, DeadReason.PERSON, actor=operator_actor(by), now=database_clock(), why=why)
    return delivery


def plan_redelivery(
    *,
    tenant_id: int,
    delivery_ids: Iterable[str],
    by: User,
    why: str,
    rate_per_s: float,
    chosen_by: Mapping[str, str],
) -> RedeliveryPlan:
    """Freeze the list: each operation's settlements in their order, the operations by age. What is no dead
    letter any more when its turn comes is skipped, with the reason."""
    require_transaction()
    if not RATES_PER_S[0] <= rate_per_s <= RATES_PER_S[1]:
        raise RedeliveryRefused("A plan sends between one in 1,000 seconds and 1,000 a second.")
    now = database_clock()
    chosen = Delivery.objects.filter(tenant_id=tenant_id, pk__in=list(delivery_ids)).order_by(
        "operation_id", "settlement__number", "pk"
    )
    ids = list(chosen.values_list("pk", flat=True)[: MOST_IN_A_PLAN + 1])
    if not ids or len(ids) > MOST_IN_A_PLAN:
        raise RedeliveryRefused(f"A plan has 1 to {MOST_IN_A_PLAN:,} deliveries.")
    plan = RedeliveryPlan.objects.create(
        tenant_id=tenant_id,
        by=by,
        why=why,
        rate_per_s=rate_per_s,
        chosen_by=dict(chosen_by),
        created_at=now,
        next_at=now,
    )
    PlannedRedelivery.objects.bulk_create(
        PlannedRedelivery(tenant_id=tenant_id, plan=plan, position=position, delivery_id=delivery_id)
        for position, delivery_id in enumerate(ids, start=1)
    )
    return plan


def cancel_plan(*, plan: RedeliveryPlan, by: User | None) -> bool:
    """Stop it where it is; what was already made due goes out. False where it had ended. `by` is None where
    its planner may no longer decide."""
    require_transaction()
    row = RedeliveryPlan.objects.filter(pk=plan.pk, cancelled_at=None, finished_at=None)
    return bool(row.update(cancelled_at=database_clock(), cancelled_by=by, next_at=None))


def run_plans() -> Iterator[int]:
    """One line a step, whose time has come: the plans take turns, which waited longest first. 1 where it made
    a delivery due."""
    due = RedeliveryPlan.objects.filter(next_at__lte=database_clock()).order_by("next_at")
    waiting = deque(due.values_list("pk", flat=True)[:MOST_PLANS])
    while waiting:
        plan_id = waiting.popleft()
        sent = _run(plan_id)
        if sent is not None:
            waiting.append(plan_id)
        yield int(bool(sent))


def _run(plan_id: str) -> bool | None:
    """None where it has no further line for now."""
    try:
        return durable(lambda: _next_line(plan_id))
    except Busy:
        logger.warning("Plan %s waits for a busy operation", plan_id)
        return None


def _next_line(plan_id: str) -> bool | None:
    """One line, at its time: the plan's row is the lock, its `next_at` the pace. None where none is due."""
    due = RedeliveryPlan.objects.select_for_update(skip_locked=True, of=("self",)).select_related("by")
    plan = due.filter(pk=plan_id, cancelled_at=None, finished_at=None).first()
    now = database_clock()
    if plan is None or plan.next_at is None or plan.next_at > now:
        return None
    if not may_decide(plan.by_id, plan.tenant_id):
        logger.warning("Plan %s stops: its planner may no longer decide", plan_id)
        cancel_plan(plan=plan, by=None)
        return None
    line = plan.lines.filter(done_at=None).select_related("delivery").order_by("position").first()
    if line is None:
        plan.finished_at, plan.next_at = now, None
        plan.save(update_fields=["finished_at", "next_at"])
        return None
    sent = _send_line(plan, line, now)
    no_burst = now - timedelta(seconds=1)
    plan.next_at = max(plan.next_at, no_burst) + timedelta(seconds=1 / plan.rate_per_s)
    plan.save(update_fields=["next_at"])
    return sent


def _send_line(plan: RedeliveryPlan, line: PlannedRedelivery, now: datetime) -> bool:
    delivery = locked_delivery(line.delivery_id, line.delivery.operation_id, waits=False)
    line.done_at = now
    if delivery.state == DeliveryState.DEAD_LETTERED:
        send_again(delivery, actor=operator_actor(plan.by), now=now, why=plan.why, plan_id=plan.pk)
    else:
        line.skipped = f"it is {delivery.state}"
    line.save(update_fields=["done_at", "skipped"])
    return line.skipped is None


def _locked(delivery_id: str) -> Delivery:
    operation_id = Delivery.objects.values_list("operation_id", flat=True).get(pk=delivery_id)
    return locked_delivery(delivery_id, operation_id)
