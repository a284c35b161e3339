"""The page of one review item."""

from __future__ import annotations

from ledger.models import User
from review.queries.page import ItemPage


def item_page(user: User, item_id: str) -> ItemPage:
    """Everything about one question. Raises `NotVisible` (a 404) without the right to see it."""
    raise NotImplementedError
