"""Parked facts: how many wait, and which of them wait for something that is known by now."""

from __future__ import annotations

from django.db import connection
from django.db.models import Count, F, Q, QuerySet, Sum

from ledger.models import Attempt, ParkedFact
from ledger.rules.parking import Parked

OPEN = Q(joined_at=None, dismissed_at=None)
"""What neither joined its attempt nor was dismissed by a person."""


def parked_now(tenant_id: int) -> Parked:
    """What waits for this tenant."""
    counted = ParkedFact.objects.filter(OPEN, tenant_id=tenant_id).aggregate(
        facts=Count("pk"), size=Sum("size", default=0)
    )
    return Parked(counted["facts"], counted["size"])


def fullest(waiting: QuerySet[ParkedFact]) -> float:
    """How full it is where it is fullest; 1: that tenant's further facts are sent back."""
    each = waiting.order_by().values("tenant_id").annotate(facts=Count("pk"), bytes=Sum("size"))
    return max((Parked(row["facts"], row["bytes"]).fullness for row in each), default=0.0)


def recorded_after_send(facts: QuerySet[ParkedFact] | None = None) -> int:
    """Attempts whose intent came after a report that they had been sent: the agent did not ask first."""
    told = ParkedFact.objects.all() if facts is None else facts
    return (
        Attempt.objects.filter(
            pk__in=told.filter(attempt__created_at__gt=F("parked_at")).values("attempt_id"),
            maybe_sent=True,
        )
        .order_by()
        .count()
    )


def operations_with_parked_facts(at_most: int) -> list[str]:
    """Operations that are known by now although facts about them still wait."""
    with connection.cursor() as cursor:
        cursor.execute(_MATCHING, {"at_most": at_most})
        return [operation_id for (operation_id,) in cursor.fetchall()]


_MATCHING = """
    SELECT operation.id FROM ledger_parkedfact fact JOIN ledger_operation operation
        ON operation.tenant_id = fact.tenant_id AND operation.operation_key = fact.operation_key
    WHERE fact.joined_at IS NULL AND fact.operation_key <> ''
    UNION
    SELECT attempt.operation_id FROM ledger_parkedfact fact JOIN ledger_attempt attempt
        ON attempt.id = fact.attempt_told AND attempt.tenant_id = fact.tenant_id
    WHERE fact.joined_at IS NULL AND fact.attempt_told <> ''
    LIMIT %(at_most)s
"""
