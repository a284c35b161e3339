"""Keyset paging: a signed cursor with the sort key of the last row and the time the list was judged at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import TypeVar

from django.core import signing
from django.db.models import Model, Q, QuerySet

from review.queries.values import BadFilter

Row = TypeVar("Row", bound=Model)

_SALT = "review.queue.cursor"


@dataclass(frozen=True)
class Place:
    """Where a page of a list begins: after the row with this sort key, or at the top. The pages of one list
    are judged as of one time."""

    list_name: str
    as_of: datetime
    key: Sequence[str | int] = ()


def place_of(list_name: str, cursor: str, now: datetime) -> Place:
    """The place a cursor names; none: the top, as of `now`. Raises `BadFilter`."""
    return Place(list_name, *read_cursor(list_name, cursor)) if cursor else Place(list_name, now)


def page_at(
    place: Place, rows: QuerySet[Row], columns: Sequence[str], size: int
) -> tuple[list[Row], str | None]:
    """The rows of one page in the order of `columns`, and the cursor of the next where there is one."""
    rest = rows.filter(after(columns, place.key)) if place.key else rows
    found = list(rest.order_by(*columns)[: size + 1])
    page = found[:size]
    if len(found) == len(page):
        return page, None
    last = [getattr(page[-1], column.lstrip("-")) for column in columns]
    return page, write_cursor(place.list_name, place.as_of, last)


def write_cursor(list_name: str, as_of: datetime, key: Sequence[str | int | datetime]) -> str:
    """A cursor that continues after the row with this sort key, judged as of the same time."""
    plain = [part.isoformat() if isinstance(part, datetime) else part for part in key]
    return signing.dumps([list_name, as_of.isoformat(), plain], salt=_SALT)


def read_cursor(list_name: str, cursor: str) -> tuple[datetime, list[str | int]]:
    """The time and the key a cursor carries. Raises `BadFilter` for any text that is not one of this list."""
    try:
        name, as_of, key = signing.loads(cursor, salt=_SALT)
    except signing.BadSignature:
        raise BadFilter(
            "cursor", "This page link is not valid any more. Start from the first page."
        ) from None
    if name != list_name:
        raise BadFilter("cursor", "This page link belongs to another list. Start from the first page.")
    return datetime.fromisoformat(as_of), key


def after(columns: Sequence[str], key: Sequence[str | int]) -> Q:
    """Rows that come after `key` in the order of `columns` (`-name`: falling), compared column by column."""
    return reduce(or_, (_first_difference(columns, key, at) for at in range(len(columns))))


def _first_difference(columns: Sequence[str], key: Sequence[str | int], at: int) -> Q:
    equal = Q(**{column.lstrip("-"): key[i] for i, column in enumerate(columns[:at])})
    column = columns[at]
    comparison = "lt" if column.startswith("-") else "gt"
    return equal & Q(**{f"{column.lstrip('-')}__{comparison}": key[at]})
