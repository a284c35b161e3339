"""What the ledger itself may be able to send now. Only leave decides; this is where to ask."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from functools import partial, reduce
from operator import or_

from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce

from ledger.models import Approval, Attempt
from ledger.policies import rule_in_force, rule_of_next_send, tools_sent_by_the_ledger
from ledger.rules.states import FINAL, OPEN_QUESTION, WAITS_FOR_AGENT, State
from ledger.transactions import database_clock, durable, one_reading


def due_sends(*, at_most: int) -> list[str]:
    """Attempts that wait for the ledger to send them, those that wait longest first."""
    tools = tools_sent_by_the_ledger()
    if not tools:
        return []
    with one_reading():
        due = _waiting(tools)
        of_the_ledger = [_of_kind(one) for one in _one_of_each_kind(due) if _is_for_the_ledger(one)]
        if not of_the_ledger:
            return []
        ours = due.filter(reduce(or_, of_the_ledger))
        by_waiting = ours.order_by(Coalesce("send_again_at", "entered_state_at"))
        return list(by_waiting.values_list("pk", flat=True)[:at_most])


def put_off(rests: Mapping[str, float]) -> None:
    """Look at these again after so many seconds, so that they do not stand in the way of others."""
    for rest_s in sorted(set(rests.values())):
        resting = [attempt_id for attempt_id, wanted_s in rests.items() if wanted_s == rest_s]
        durable(partial(_put_off, resting, rest_s))


def _waiting(tools: dict[int, frozenset[str]]) -> QuerySet[Attempt]:
    """Each way of waiting is found by an index of its own. So the approved ones are read first: a condition
    on their approvals would have the whole table of attempts read by every pass."""
    now = database_clock()
    approvals = Approval.objects.filter(used_at=None, voided_at=None, expires_at__gt=now)
    approved = list(approvals.filter(tenant_id__in=tools).values_list("attempt_id", flat=True))
    return Attempt.objects.filter(
        Q(start_by__isnull=False, state__in=sorted(WAITS_FOR_AGENT))
        | Q(pk__in=approved, state__in=sorted(OPEN_QUESTION)),
        Q(send_again_at=None) | Q(send_again_at__lte=now),
        reduce(or_, (_of_tenant(tenant_id, globs) for tenant_id, globs in tools.items())),
    )


_KEEPS_ITS_OWN = Q(held_at__isnull=False, dispatched_at__isnull=True, maybe_sent=False)
"""As `policies.rule_of_next_send` has it: ever held, and not sent yet."""


def _one_of_each_kind(due: QuerySet[Attempt]) -> Iterator[Attempt]:
    """Who sends is decided by tool, rule, and whether it was ever held and is not sent yet. What agents send
    is so left out by kinds: however much of it waits, it takes no place of what the ledger sends."""
    kind = ("tenant_id", "tool", "policy_id")
    for alike in (due.filter(_KEEPS_ITS_OWN), due.exclude(_KEEPS_ITS_OWN)):
        one_of_each = alike.order_by(*kind).distinct(*kind)
        yield from one_of_each.select_related("policy").defer("args", "args_bytes")


def _of_kind(attempt: Attempt) -> Q:
    keeps_its_own = attempt.held_at is not None and not attempt.was_sent
    alike = Q(tenant_id=attempt.tenant_id, tool=attempt.tool, policy_id=attempt.policy_id)
    return alike & (_KEEPS_ITS_OWN if keeps_its_own else ~_KEEPS_ITS_OWN)


def _of_tenant(tenant_id: int, globs: frozenset[str]) -> Q:
    patterns = "|".join(_as_pattern(glob) for glob in sorted(globs))
    return Q(tenant_id=tenant_id, tool__regex=f"^({patterns})$")


def _as_pattern(glob: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in glob)


def _is_for_the_ledger(attempt: Attempt) -> bool:
    in_force = rule_in_force(attempt.tenant_id, attempt.tool)
    return rule_of_next_send(attempt, in_force).executor == "ledger"


def _put_off(attempt_ids: Collection[str], rest_s: float) -> None:
    """Those that somebody else works on, or has sent meanwhile, are left as they are."""
    now = database_clock()
    due = Attempt.objects.filter(Q(send_again_at=None) | Q(send_again_at__lte=now), pk__in=attempt_ids)
    still = due.exclude(state__in=[State.DISPATCHED, *sorted(FINAL)]).select_for_update(skip_locked=True)
    again_at = now + timedelta(seconds=rest_s)
    Attempt.objects.filter(pk__in=list(still.values_list("pk", flat=True))).update(send_again_at=again_at)
