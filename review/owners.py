"""The rules of ownership in force, and who can act: what the ledger asks when a question opens."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import OuterRef, QuerySet, Subquery

from ledger.models import ReviewGroup, User
from ledger.owners import first_team_of
from ledger.rules.ownership import Able, Owned, OwnershipRule, Question, first_match, owner_by
from ledger.rules.vocabulary import Effect, ReviewReason
from review.absences import lines_of_those_away
from review.models import OwnershipEntry, OwnershipVersion, TenantPermission


class RuledOwners:
    """Answers by the newest version of the tenant's rules; at most four queries."""

    def owner_of(self, question: Question, *, tenant_id: int) -> Owned:
        rules = rules_in_force(tenant_id)
        place = first_match(rules, question)
        able = Able() if place is None else able_among(tenant_id, [rules[place]])
        return owner_by(rules, question, able=able, first_team=first_team_of(tenant_id))


def rules_in_force(tenant_id: int) -> tuple[OwnershipRule, ...]:
    """In their order; one query."""
    return tuple(rule_of_entry(entry) for entry in entries_in_force(tenant_id))


def entries_in_force(tenant_id: int) -> QuerySet[OwnershipEntry]:
    newest = OwnershipVersion.objects.filter(tenant_id=OuterRef("tenant_id")).order_by("-version")
    in_force = OwnershipEntry.objects.filter(tenant_id=tenant_id, version=Subquery(newest.values("pk")[:1]))
    return in_force.order_by("place")


def rule_of_entry(entry: OwnershipEntry) -> OwnershipRule:
    return OwnershipRule(
        tool_glob=entry.tool_glob,
        reason=ReviewReason(entry.reason) if entry.reason else None,
        effect=Effect(entry.effect) if entry.effect else None,
        team=entry.team_id,
        person=entry.person_id,
        destination_glob=entry.destination_glob,
    )


def able_among(tenant_id: int, rules: Iterable[OwnershipRule]) -> Able:
    """Whoever of those named by these rules can act now; two queries."""
    named = list(rules)
    teams = {rule.team for rule in named if rule.team is not None}
    people = {rule.person for rule in named if rule.person is not None}
    return Able(
        teams=frozenset(teams_that_act(tenant_id).filter(pk__in=teams).values_list("pk", flat=True)),
        people=frozenset(present(tenant_id).filter(pk__in=people).values_list("pk", flat=True)),
    )


def deciders(tenant_id: int) -> QuerySet[User]:
    """Active people with the right to decide work there: nobody else can own it."""
    held = TenantPermission.objects.filter(content_object_id=tenant_id, permission__codename="decide_work")
    return User.objects.filter(is_active=True, pk__in=held.values("user_id"))


def present(tenant_id: int) -> QuerySet[User]:
    """Those of them who are not away: rules give nothing to anybody else."""
    return deciders(tenant_id).exclude(pk__in=lines_of_those_away(tenant_id).values("person_id"))


def teams_that_act(tenant_id: int) -> QuerySet[ReviewGroup]:
    """Teams in which somebody decides work."""
    members = deciders(tenant_id).values("pk")
    return ReviewGroup.objects.filter(tenant_id=tenant_id, members__in=members).distinct()
