"""The order of the queue: overdue, risk, key window closing, oldest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.contrib.postgres.fields import ArrayField
from django.db.models import Case, DateTimeField, F, Func, IntegerField, Q, QuerySet, TextField, Value, When
from django.db.models.lookups import Exact

from ledger.models import PolicySnapshot, ReviewItem
from ledger.policies import current_snapshots, hiding_too, policy_of
from ledger.rules.masks import MASKED
from ledger.rules.pointers import steps
from ledger.rules.policy import Rule
from ledger.rules.vocabulary import HIGH_RISK

ORDER = ("late", "calm", "window_end", "opened_at", "pk")
NEVER = datetime(9999, 1, 1, tzinfo=UTC)

PolicyAndTool = tuple[int, str]


@dataclass(frozen=True)
class RulesOfList:
    """The rule each (policy, tool) of a list is under. Risk and key windows live in rules, not in rows."""

    rules: Mapping[PolicyAndTool, Rule]

    @property
    def tools(self) -> tuple[str, ...]:
        return tuple(sorted({tool for _, tool in self.rules}))

    def risky(self) -> Q:
        """Attempts under a rule of high risk; of none: nothing."""
        pairs = [pair for pair, rule in self.rules.items() if rule.effect in HIGH_RISK]
        return _any_of(pairs)

    def windows(self) -> list[tuple[timedelta, Q]]:
        """For each length of a key window, the attempts it holds for."""
        by_length: dict[float, list[PolicyAndTool]] = defaultdict(list)
        for pair, rule in self.rules.items():
            if rule.idempotent and rule.key_ttl_s:
                by_length[rule.key_ttl_s].append(pair)
        return [(timedelta(seconds=length), _any_of(pairs)) for length, pairs in by_length.items()]

    def well_masked(self) -> Q:
        """Attempts of whose arguments nothing is stored that is hidden by now: they are stored without what
        the rule of their intent hid, and never changed."""
        by_mask: dict[tuple[str, ...], list[PolicyAndTool]] = defaultdict(list)
        for pair, rule in self.rules.items():
            by_mask[rule.mask].append(pair)
        found = Q()
        for mask, pairs in by_mask.items():
            for path in mask:
                found &= ~_any_of(pairs) | Q(Exact(_Stored(path), Value(MASKED)))
        return found


class _Stored(Func):
    """The text of the stored argument a pointer finds; as if masked where it finds none."""

    template = f"coalesce(%(expressions)s, '{MASKED}')"
    arg_joiner = " #>> "

    def __init__(self, path: str) -> None:
        where = Value(steps(path), output_field=ArrayField(TextField()))
        super().__init__(F("attempt__args"), where, output_field=TextField())


def rules_of(items: QuerySet[ReviewItem]) -> RulesOfList:
    """The rules of everything on a list; three queries."""
    pairs = items.order_by().values_list("attempt__policy_id", "attempt__tool").distinct()
    return rules_of_pairs(set(pairs))


def rules_of_pairs(pairs: set[PolicyAndTool]) -> RulesOfList:
    """Two queries. Each hides what its tenant's policy in force hides as well."""
    snapshots = PolicySnapshot.objects.in_bulk({policy_id for policy_id, _ in pairs})
    in_force = current_snapshots(snapshot.tenant_id for snapshot in snapshots.values())
    found: dict[PolicyAndTool, Rule] = {}
    for policy_id, tool in pairs:
        snapshot = snapshots[policy_id]
        rule = policy_of(snapshot).rule_for(tool)
        if rule is not None:
            found[policy_id, tool] = hiding_too(rule, policy_of(in_force[snapshot.tenant_id]).rule_for(tool))
    return RulesOfList(found)


def with_urgency(items: QuerySet[ReviewItem], rules: RulesOfList, as_of: datetime) -> QuerySet[ReviewItem]:
    """The list with the columns of its ORDER. `as_of` decides what is overdue, so that its pages agree."""
    return items.annotate(
        late=_flag(Q(due_at__lte=as_of)), calm=_flag(rules.risky()), window_end=_window_end(rules, as_of)
    )


def _flag(holds: Q) -> Case:
    """0 where it holds, so that those come first."""
    return Case(When(holds, then=Value(0)), default=Value(1), output_field=IntegerField())


def _window_end(rules: RulesOfList, as_of: datetime) -> Case:
    """The window that ends next comes first; one that is over presses nobody any more."""
    whens = [
        When(
            Q(attempt__key_first_sent_at__gt=as_of - length) & under,
            then=F("attempt__key_first_sent_at") + Value(length),
        )
        for length, under in rules.windows()
    ]
    return Case(*whens, default=Value(NEVER), output_field=DateTimeField())


def _any_of(pairs: list[PolicyAndTool]) -> Q:
    by_policy: dict[int, list[str]] = defaultdict(list)
    for policy_id, tool in pairs:
        by_policy[policy_id].append(tool)
    found = Q(pk__in=[])
    for policy_id, tools in by_policy.items():
        found |= Q(attempt__policy_id=policy_id, attempt__tool__in=tools)
    return found
