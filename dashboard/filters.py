"""The queue's address as filters, and filters as an address: the URL is the state."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from django.http import QueryDict

from ledger.rules.states import State
from ledger.rules.vocabulary import ReviewReason
from review.queries import BadFilter, QueueFilters, Tab

FIELDS = ("tab", "q", "state", "reason", "tool", "tenant", "owner", "cursor")
LONGEST = 500
MOST_VALUES = 20


def read_filters(query: QueryDict) -> QueueFilters:
    """Raises `BadFilter` for a value no filter has; names that are none of FIELDS are left alone."""
    return QueueFilters(
        tab=_tab(_one(query, "tab")),
        text=_one(query, "q").strip(),
        states=tuple(_state(value) for value in _several(query, "state")),
        reasons=tuple(_reason(value) for value in _several(query, "reason")),
        tools=_several(query, "tool"),
        tenants=_several(query, "tenant"),
        owner=_one(query, "owner"),
        cursor=_one(query, "cursor"),
    )


def kept_query(query: QueryDict, **changes: str | None) -> str:
    """`?…` with the filters of this address and these changes (None drops a field); or nothing at all."""
    pairs = [(name, value) for name in FIELDS if name not in changes for value in _several(query, name)]
    pairs += [(name, value) for name, value in changes.items() if value is not None]
    return f"?{urlencode(pairs)}" if pairs else ""


def is_filtered(query: QueryDict) -> bool:
    """Does anything beside the tab and the place in the list narrow what is shown?"""
    return any(_several(query, name) for name in FIELDS if name not in ("tab", "cursor"))


def shown_values(query: QueryDict) -> Mapping[str, str]:
    """What stands in each field of the form."""
    return {name: _one(query, name) for name in FIELDS}


def _one(query: QueryDict, name: str) -> str:
    value = query.get(name, "")
    if len(value) > LONGEST or not value.isprintable():
        raise BadFilter(name, f"The value of {name} is too long or holds control characters.")
    return value


def _several(query: QueryDict, name: str) -> tuple[str, ...]:
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
