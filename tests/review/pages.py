"""The page of an attempt's question, one button of it, and the list it stands on."""

from __future__ import annotations

from typing import Any

from ledger.models import Attempt, User
from ledger.rules.vocabulary import DecisionKind
from review.queries import ActionView, ItemPage, QueueFilters, Tab, item_page, queue
from tests.support import make


def page_of(user: User, attempt: Attempt) -> ItemPage:
    return item_page(user, make.item_of(attempt).pk)


def action(page: ItemPage, kind: DecisionKind) -> ActionView:
    return next(action for action in page.actions if action.kind is kind)


def seen(user: User, tab: Tab = Tab.ALL, **filters: Any) -> list[str]:
    """The items a person finds on a list of the queue."""
    return [row.item_id for row in queue(user, QueueFilters(tab=tab, **filters)).rows]
