"""The queue's address as filters, and filters as an address: the URL is the state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlencode

from django.http import QueryDict

from ledger.rules.states import State
from ledger.rules.vocabulary import ReviewReason
from review.queries import BadFilter, QueueFilters, Tab, TenantView

FIELDS = ("tab", "q", "state", "reason", "tool", "tenant", "owner", "cursor")
LONGEST = 500
MOST_VALUES = 20


def read_filters(query: QueryDict) -> QueueFilters:
    """Raises `BadFilter` for a value no filter has; names that are none of FIELDS are left alone."""
    return QueueFilters(
        tab=_tab(one_value(query, "tab")),
        text=one_value(query, "q").strip(),
        states=tuple(_state(value) for value in several_values(query, "state")),
        reasons=tuple(_reason(value) for value in several_values(query, "reason")),
        tools=several_values(query, "tool"),
        tenants=several_values(query, "tenant"),
        owner=one_value(query, "owner"),
        cursor=one_value(query, "cursor"),
    )


def kept_query(query: QueryDict, fields: Sequence[str] = FIELDS, /, **changes: str | None) -> str:
    """`?…` with the filters of this address and these changes (None drops a field); or nothing at all."""
    pairs = [(name, value) for name in fields if name not in changes for value in several_values(query, name)]
    pairs += [(name, value) for name, value in changes.items() if value is not None]
    return f"?{urlencode(pairs)}" if pairs else ""


def is_filtered(query: QueryDict, fields: Sequence[str] = FIELDS) -> bool:
    """Does anything beside the tab and the place in the list narrow what is shown?"""
    return any(several_values(query, name) for name in fields if name not in ("tab", "cursor"))


def shown_values(query: QueryDict, fields: Sequence[str] = FIELDS) -> Mapping[str, str]:
    """What stands in each field of the form. Raises `BadFilter`."""
    return {name: one_value(query, name) for name in fields}


def pages(
    query: QueryDict, next_cursor: str | None, fields: Sequence[str] = ("cursor",)
) -> Mapping[str, str]:
    """Where the pager under a list leads; empty where there is no such page."""
    return {
        "first_page": (kept_query(query, fields, cursor=None) or "?") if query.get("cursor") else "",
        "next_page": kept_query(query, fields, cursor=next_cursor) if next_cursor else "",
    }


def same_words(values: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Options of a field whose values are their own words."""
    return tuple((value, value) for value in values)


def tenant_options(tenants: Iterable[TenantView]) -> tuple[tuple[str, str], ...]:
    return tuple((tenant.slug, tenant.name) for tenant in tenants)


def one_value(query: QueryDict, name: str) -> str:
    value = query.get(name, "")
    if len(value) > LONGEST or not value.isprintable():
        raise BadFilter(name, f"The value of {name} is too long or holds control characters.")
    return value


def several_values(query: QueryDict, name: str) -> tuple[str, ...]:
    return tuple(value for value in query.getlist(name)[:MOST_VALUES] if value and len(value) <= LONGEST)


def _tab(value: str) -> Tab:
    if not value:
        return Tab.ALL
    try:
        return Tab(value)
    except ValueError:
        raise BadFilter("tab", f"There is no list “{value}”; there are {', '.join(Tab)}.") from None


def _state(value: str) -> State:
    try:
        return State(value)
    except ValueError:
        raise BadFilter("state", f"There is no state “{value}”.") from None


def _reason(value: str) -> ReviewReason:
    try:
        return ReviewReason(value)
    except ValueError:
        raise BadFilter(
            "reason", f"There is no reason “{value}”; there are {', '.join(ReviewReason)}."
        ) from None
