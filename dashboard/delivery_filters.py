"""The address of the list of deliveries as filters: the URL is the state."""

from __future__ import annotations

from django.http import QueryDict

from dashboard.filters import kept_query, one_value, several_values
from ledger.rules.states import DeliveryState
from review.queries import BadFilter
from review.queries.deliveries import known_error
from review.queries.delivery_values import DeliveryFilters

FIELDS = ("state", "destination", "error", "tenant", "q", "cursor")


def read_filters(query: QueryDict) -> DeliveryFilters:
    """Raises `BadFilter` for a value no filter has; names that are none of FIELDS are left alone."""
    return DeliveryFilters(
        states=tuple(_state(value) for value in several_values(query, "state")),
        destination=one_value(query, "destination"),
        errors=tuple(known_error(value) for value in several_values(query, "error")),
        tenants=several_values(query, "tenant"),
        text=one_value(query, "q").strip(),
        cursor=one_value(query, "cursor"),
    )


def kept(query: QueryDict, **changes: str | None) -> str:
    """`?…` with the filters of this address and these changes (None drops a field); or nothing at all."""
    return kept_query(query, FIELDS, **changes)


def _state(value: str) -> DeliveryState:
    try:
        return DeliveryState(value)
    except ValueError:
        raise BadFilter("state", f"There is no state “{value}” of a delivery.") from None
