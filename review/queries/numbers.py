"""The numbers of the work of one person's tenants: what a monitor reads of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from ledger.models import Destination, User
from ledger.queries.delivery_numbers import OTHER
from ledger.queries.numbers import Number, Scope, numbers_of_work
from ledger.transactions import database_clock
from review.queries.tenants import tenants_of
from review.queries.values import TenantView
from review.queries.words import plain

SECONDS = "_seconds"
BY_DESTINATION = "destination"
QUANTILES: Mapping[str, str] = {"0.5": "p50", "0.95": "p95"}


@dataclass(frozen=True)
class ValueView:
    """One value of a measure. `destination_id` where its label is one."""

    label: str
    value: float
    destination_id: str = ""


@dataclass(frozen=True)
class MeasureView:
    """One measure as a table. `too_few`: there is not enough data for it."""

    name: str
    help: str
    label: str
    in_seconds: bool
    values: tuple[ValueView, ...]
    too_few: bool


@dataclass(frozen=True)
class NumbersPage:
    measures: tuple[MeasureView, ...]
    tenants: tuple[TenantView, ...]
    as_of: datetime


def numbers_page(user: User) -> NumbersPage:
    """Every number of the work of these tenants. Queries do not grow with rows."""
    tenants = tenants_of(user)
    now = database_clock()
    measured = list(numbers_of_work(now, Scope([tenant.id for tenant in tenants])))
    names = _names(measured)
    return NumbersPage(tuple(_measure(number, names) for number in measured), tenants, now)


def _names(measured: list[Number]) -> Mapping[str, str]:
    ids = {value for number in measured if number.label == BY_DESTINATION for value in number.values}
    return dict(Destination.objects.filter(pk__in=ids - {OTHER}).values_list("pk", "name"))


def _measure(number: Number, names: Mapping[str, str]) -> MeasureView:
    return MeasureView(
        name=number.name,
        help=number.help,
        label=number.label,
        in_seconds=number.name.endswith(SECONDS),
        values=tuple(_value(number, label, value, names) for label, value in sorted(number.values.items())),
        too_few=number.label == "quantile" and not number.values,
    )


def _value(number: Number, label: str, value: float, names: Mapping[str, str]) -> ValueView:
    if number.label == BY_DESTINATION:
        known = label in names
        return ValueView(names.get(label, label), value, label if known else "")
    return ValueView(QUANTILES.get(label, label if label.isupper() else plain(label)), value)
