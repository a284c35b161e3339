"""What a person does with a destination: the right to administer asked, then the ledger's verb called.

Each raises `NotVisible`, `NotPermitted` and `DestinationRefused` (the message is written for a person).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from django.conf import settings
from django.db import IntegrityError

from ledger import deliveries, http
from ledger.events import operator_actor
from ledger.models import Destination, User
from ledger.rules.deliveries import PauseReason
from ledger.rules.names import name_problem, scope_problem, url_problem
from ledger.transactions import database_clock, durable
from review.answers import Refused
from review.door import enter_tenant, enter_tenant_to_write, require_administrator, to_write
from review.queries.destinations import enter_destination, newest_secret

T = TypeVar("T")


class DestinationRefused(Refused):
    """Of what is done to a destination."""


class BadDestination(DestinationRefused):
    """What was typed cannot be a destination; `field` says which part."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message, field=field)


@dataclass(frozen=True)
class Wanted:
    """A destination to be. `tool_globs`: none hears of every tool."""

    tenant: str  # its slug
    name: str
    url: str
    ack: str
    tool_globs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Added:
    """A new destination and its secret, which nobody can show again."""

    destination_id: str
    secret: str


def add(user: User, wanted: Wanted) -> Added:
    """Raises `BadDestination` besides."""
    tenant, rights = enter_tenant(user, wanted.tenant)
    require_administrator(tenant, rights)
    _check(wanted)
    try:
        http.check_address(wanted.url)
        added, secret = durable(lambda: _add(user, wanted))
    except http.AddressRefused as why:
        raise BadDestination("url", f"It must not be asked: {why}.") from None
    except IntegrityError:
        raise BadDestination("name", f"{tenant.name} has a destination of this name already.") from None
    return Added(added.pk, secret)


def pause(user: User, destination_id: str, *, why: str) -> None:
    """Send it nothing more; what waits is held."""

    def work(destination: Destination, now: datetime) -> None:
        if destination.paused_at is not None:
            raise DestinationRefused("It is paused already.")
        deliveries.pause(destination, PauseReason.PERSON, actor=operator_actor(user), now=now, why=why)

    _as_administrator(user, destination_id, work)


def resume(user: User, destination_id: str, *, why: str) -> None:
    """Send it what was held."""

    def work(destination: Destination, now: datetime) -> None:
        if destination.paused_at is None:
            raise DestinationRefused("It is not paused.")
        deliveries.resume(destination, actor=operator_actor(user), now=now, why=why)

    _as_administrator(user, destination_id, work)


def rotate_secret(user: User, destination_id: str, *, overlap: timedelta, replaces: str) -> str:
    """The new secret. `replaces`: the one this person saw as the newest, so that no press counts twice."""

    def work(destination: Destination, now: datetime) -> str:
        if newest_secret(destination.pk) != replaces:
            raise DestinationRefused("Its secret was rotated since this page was read; nothing was changed.")
        return deliveries.rotate_secret(destination, actor=operator_actor(user), now=now, overlap=overlap)

    return _as_administrator(user, destination_id, work)


def send_test(user: User, destination_id: str) -> None:
    """Post one signed test event now; how it ended stands among the changes. Outside any transaction: it
    waits for an answer."""
    destination = administered(user, destination_id)
    deliveries.send_test(destination=destination, actor=operator_actor(user))


def administered(user: User, destination_id: str) -> Destination:
    """The destination, where this person administers its tenant."""
    destination, rights = enter_destination(user, destination_id)
    require_administrator(destination.tenant, rights)
    return destination


def _add(user: User, wanted: Wanted) -> tuple[Destination, str]:
    tenant, rights = enter_tenant_to_write(user, wanted.tenant)
    require_administrator(tenant, rights)
    return deliveries.add_destination(
        tenant_id=tenant.pk,
        name=wanted.name,
        url=wanted.url,
        ack=wanted.ack,
        actor=operator_actor(user),
        tool_globs=wanted.tool_globs,
    )


def _check(wanted: Wanted) -> None:
    problems = {
        "name": name_problem(wanted.name),
        "url": url_problem(wanted.url, https_only=not settings.DEVELOPMENT),
        "tools": next(filter(None, (scope_problem(f"tool:{glob}") for glob in wanted.tool_globs)), None),
    }
    for field, problem in problems.items():
        if problem:
            raise BadDestination(field, f"{problem[:1].upper()}{problem[1:]}.")


def _as_administrator(user: User, destination_id: str, work: Callable[[Destination, datetime], T]) -> T:
    """Its row is locked, so that of two presses one is told that it came second."""

    def press() -> T:
        destination, rights = to_write(lambda: enter_destination(user, destination_id))
        require_administrator(destination.tenant, rights)
        locked = Destination.objects.select_for_update(no_key=True).get(pk=destination.pk)
        return work(locked, database_clock())

    return durable(press)
