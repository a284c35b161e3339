"""The page of an attempt's question, and one button of it."""

from __future__ import annotations

from ledger.models import Attempt, User
from ledger.rules.vocabulary import DecisionKind
from review.queries import ActionView, ItemPage, item_page
from tests.support import make


def page_of(user: User, attempt: Attempt) -> ItemPage:
    return item_page(user, make.item_of(attempt).pk)


def action(page: ItemPage, kind: DecisionKind) -> ActionView:
    return next(action for action in page.actions if action.kind is kind)
