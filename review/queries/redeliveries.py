"""Plans of redelivery: what was frozen, how far it is, what was skipped and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db.models import Count, F, Q, QuerySet

from ledger.models import Destination, PlannedRedelivery, RedeliveryPlan, User
from ledger.rules.states import DeliveryState
from ledger.transactions import database_clock
from review.door import enter_row, right_needed
from review.queries.cursor import page_at, place_of
from review.queries.delivery_values import PressView
from review.queries.delivery_words import END_WORDS
from review.queries.tenants import tenant_view
from review.queries.values import TenantView
from review.queries.words import plain
from review.rights import Rights

PAGE_SIZE = 50
NEWEST_PLANS = 10
BY_POSITION = ("position",)


@dataclass(frozen=True)
class PlanRow:
    """One plan in a line. `standing`: running, cancelled or finished."""

    plan_id: str
    by: str
    why: str
    standing: str
    created_at: datetime
    total: int
    done: int


@dataclass(frozen=True)
class LineView:
    """One line of the frozen list. `became`: made due, skipped with a reason, will be skipped, or waiting."""

    position: int
    delivery_id: str
    operation_key: str
    destination: str
    state: DeliveryState
    became: str
    done_at: datetime | None


@dataclass(frozen=True)
class PlanPage:
    """One plan: total = made due + skipped + still eligible + no longer eligible + cancelled before their
    turn."""

    plan_id: str
    tenant: TenantView
    by: str
    why: str
    rate_per_s: float
    chosen_by: tuple[tuple[str, str], ...]
    created_at: datetime
    cancelled_at: datetime | None
    cancelled_because: str
    finished_at: datetime | None
    standing: str
    total: int
    made_due: int
    skipped: int
    eligible: int
    not_eligible: int
    skipped_because: tuple[tuple[str, int], ...]
    made_due_now: tuple[tuple[DeliveryState, int], ...]
    paused: bool  # its destination is, and holds what it makes due
    lines: tuple[LineView, ...]
    next_cursor: str | None
    cancel: PressView
    rights: Rights
    as_of: datetime

    @property
    def done(self) -> int:
        return self.made_due + self.skipped

    @property
    def left_s(self) -> float:
        """How long it still takes at its rate."""
        return (self.total - self.done) / self.rate_per_s


def enter_plan(user: User, plan_id: str) -> tuple[RedeliveryPlan, Rights]:
    """The plan, if this person may see it. Raises `NotVisible`."""
    plans = RedeliveryPlan.objects.select_related("tenant", "by", "cancelled_by")
    return enter_row(user, plans.filter(pk=plan_id).first(), plan_id)


def newest_plans(tenant_ids: list[int]) -> tuple[PlanRow, ...]:
    """The newest ten of these tenants; one query."""
    done = Count("lines", filter=Q(lines__done_at__isnull=False))
    plans = RedeliveryPlan.objects.filter(tenant_id__in=tenant_ids).select_related("by")
    counted = plans.annotate(total=Count("lines"), done=done).order_by("-pk")[:NEWEST_PLANS]
    return tuple(
        PlanRow(
            plan_id=plan.pk,
            by=plan.by.get_username(),
            why=plan.why,
            standing=_standing(plan),
            created_at=plan.created_at,
            total=vars(plan)["total"],
            done=vars(plan)["done"],
        )
        for plan in counted
    )


def plan_page(user: User, plan_id: str, *, cursor: str = "") -> PlanPage:
    """One plan with 50 of its lines. Raises `NotVisible`, and `BadFilter` for a cursor of another list."""
    plan, rights = enter_plan(user, plan_id)
    now = database_clock()
    counts = _counts(plan)
    waiting = Counter({state: n for (done, _, state), n in counts.items() if not done})
    place = place_of(f"plan:{plan.pk}", cursor, now)
    lines, next_cursor = page_at(place, _lines(plan), BY_POSITION, PAGE_SIZE)
    destination = _destination(plan)
    return PlanPage(
        plan_id=plan.pk,
        tenant=tenant_view(plan.tenant),
        by=plan.by.get_username(),
        why=plan.why,
        rate_per_s=plan.rate_per_s,
        chosen_by=_chosen_by(plan, destination),
        created_at=plan.created_at,
        cancelled_at=plan.cancelled_at,
        cancelled_because=_cancelled_because(plan),
        finished_at=plan.finished_at,
        standing=_standing(plan),
        total=counts.total(),
        made_due=sum(n for (done, skipped, _), n in counts.items() if done and skipped is None),
        skipped=sum(n for (done, skipped, _), n in counts.items() if done and skipped is not None),
        eligible=waiting[DeliveryState.DEAD_LETTERED],
        not_eligible=waiting.total() - waiting[DeliveryState.DEAD_LETTERED],
        skipped_because=_skipped_because(counts),
        made_due_now=_made_due_now(counts),
        paused=destination is not None and destination.paused_at is not None,
        lines=tuple(_line(line, plan) for line in lines),
        next_cursor=next_cursor,
        cancel=_cancel(plan, rights, waiting.total()),
        rights=rights,
        as_of=now,
    )


Counts = Counter[tuple[bool, str | None, str]]


def _counts(plan: RedeliveryPlan) -> Counts:
    """Lines by done, skipped and the state of their delivery now."""
    grouped = plan.lines.order_by().values(
        "skipped", state=F("delivery__state"), done=Q(done_at__isnull=False)
    )
    rows = grouped.annotate(n=Count("pk"))
    return Counter({(row["done"], row["skipped"], row["state"]): row["n"] for row in rows})


def _skipped_because(counts: Counts) -> tuple[tuple[str, int], ...]:
    found: Counter[str] = Counter()
    for (_, skipped, _), number in counts.items():
        if skipped is not None:
            found[skipped] += number
    return tuple(found.most_common())


def _made_due_now(counts: Counts) -> tuple[tuple[DeliveryState, int], ...]:
    """Where those stand now that it made due."""
    found: Counter[DeliveryState] = Counter()
    for (done, skipped, state), number in counts.items():
        if done and skipped is None:
            found[DeliveryState(state)] += number
    return tuple((state, found[state]) for state in DeliveryState if found[state])


def _lines(plan: RedeliveryPlan) -> QuerySet[PlannedRedelivery]:
    return plan.lines.select_related("delivery__operation", "delivery__destination").defer("delivery__body")


def _line(line: PlannedRedelivery, plan: RedeliveryPlan) -> LineView:
    return LineView(
        position=line.position,
        delivery_id=line.delivery_id,
        operation_key=line.delivery.operation.operation_key,
        destination=line.delivery.destination.name,
        state=DeliveryState(line.delivery.state),
        became=_became(line, plan),
        done_at=line.done_at,
    )


def _became(line: PlannedRedelivery, plan: RedeliveryPlan) -> str:
    if line.skipped is not None:
        return f"skipped: {line.skipped}"
    if line.done_at is not None:
        return "made due"
    if plan.cancelled_at is not None:
        return "cancelled before its turn"
    if line.delivery.state != DeliveryState.DEAD_LETTERED:
        return f"will be skipped: it is {line.delivery.state}"
    return "waits for its turn"


def _destination(plan: RedeliveryPlan) -> Destination | None:
    named = Destination.objects.filter(pk=plan.chosen_by.get("destination", ""))
    return named.filter(tenant_id=plan.tenant_id).first()


def _chosen_by(plan: RedeliveryPlan, destination: Destination | None) -> tuple[tuple[str, str], ...]:
    """The filter it was frozen from, in words."""
    chosen = {name: str(value) for name, value in plan.chosen_by.items() if value}
    if destination is not None:
        chosen["destination"] = destination.name
    if "dead_until" in chosen:
        until = datetime.fromisoformat(chosen["dead_until"]).astimezone(UTC)
        chosen["dead_until"] = f"{until:%Y-%m-%d %H:%M:%S} UTC"
    if "error" in chosen:
        chosen["error"] = END_WORDS.get(chosen["error"], chosen["error"])
    return tuple((plain(name), value) for name, value in sorted(chosen.items()))


def _cancelled_because(plan: RedeliveryPlan) -> str:
    """`by` whom, or what ended it by itself."""
    if plan.cancelled_at is None:
        return ""
    if plan.cancelled_by is None:
        return f"because {plan.by.get_username()} may no longer decide work here"
    return f"by {plan.cancelled_by.get_username()}"


def _standing(plan: RedeliveryPlan) -> str:
    if plan.cancelled_at is not None:
        return "cancelled"
    return "running" if plan.finished_at is None else "finished"


def _cancel(plan: RedeliveryPlan, rights: Rights, waiting: int) -> PressView:
    says = f"Leaves what has not had its turn yet ({waiting}) as it is; what was made due goes out."
    why = "" if _standing(plan) == "running" else "It has ended."
    if not rights.decide:
        why = right_needed(plan.tenant, "decide_work")
    return PressView("cancel", "Cancel the plan", says, why)
