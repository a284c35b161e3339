"""Who is away from the work of a tenant, and until when: no rule gives them anything meanwhile. What is
theirs stays theirs, to be handed over or assigned by people.

Each verb raises `NotVisible`, `NotPermitted` and `AbsenceRefused`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.db.models.functions import Now

from ledger.models import Tenant, User
from ledger.transactions import database_clock, durable
from review.access import person_in
from review.answers import Refused
from review.door import enter_tenant_to_write, require_administrator
from review.models import Absence
from review.rights import may_decide

LONGEST = timedelta(days=366)


@dataclass(frozen=True)
class Away:
    """An absence that is not over, as somebody said it."""

    until: datetime
    said_by: str
    why: str


class AbsenceRefused(Refused):
    """Of what is said about somebody's absence."""


def mark_away(by: User, slug: str, person_id: int, *, until: datetime, why: str) -> None:
    """Said by themselves or by an administrator; said again, it moves the end."""
    now = database_clock()
    if not now < until <= now + LONGEST:
        message = f"An absence ends in the future, within {LONGEST.days} days."
        raise AbsenceRefused(message, field="until")
    _say(by, slug, person_id, until, why)


def mark_back(by: User, slug: str, person_id: int, *, why: str) -> None:
    """Rules give them work again, from now on."""
    _say(by, slug, person_id, None, why)


def away_in(tenant: Tenant) -> Mapping[int, Away]:
    """User id → the absence of whoever is away now; one query."""
    found = lines_of_those_away(tenant.pk).select_related("by")
    return {
        line.person_id: Away(line.until, line.by.get_username(), line.why)
        for line in found
        if line.until is not None
    }


def lines_of_those_away(tenant_id: int) -> QuerySet[Absence]:
    """The newest line of everybody whose absence is not over."""
    lines = Absence.objects.filter(tenant_id=tenant_id)
    newest = lines.order_by("person_id", "-pk").distinct("person_id")
    return lines.filter(pk__in=newest.values("pk"), until__gt=Now())


def why_not_away(person: User, tenant: Tenant) -> str:
    """Why nothing can be said of this person's absence; empty where it can."""
    return "" if may_decide(person, tenant) else f"{person.get_username()} decides no work in {tenant.name}."


def _say(by: User, slug: str, person_id: int, until: datetime | None, why: str) -> None:
    def work() -> None:
        tenant, rights = enter_tenant_to_write(by, slug)
        person = person_in(tenant, person_id) if person_id != by.pk else by
        if person != by:
            require_administrator(tenant, rights)
        _check(person, tenant, until)
        at = database_clock()
        Absence.objects.create(tenant=tenant, person=person, until=until, by=by, why=why, at=at)

    durable(work)


def _check(person: User, tenant: Tenant, until: datetime | None) -> None:
    problem = why_not_away(person, tenant)
    if not problem and until is None and person.pk not in away_in(tenant):
        problem = f"{person.get_username()} is not away."
    if problem:
        raise AbsenceRefused(problem)
