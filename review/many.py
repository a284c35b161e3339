"""One press for many items: each is judged alone, and how each one went is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ledger.lifecycle import Decided, DecisionRefused
from ledger.models import User
from ledger.transactions import Busy
from review.door import NotPermitted, NotVisible
from review.ownership import UnknownAssignee

MOST_AT_ONCE = 50  # as many as one page of the queue lists
LOCKED = "Its rows stayed locked by others: press again in a moment."

Own = Callable[[User, str], Decided]


class NothingChosen(ValueError):
    """No item was ticked, or more than one page of them."""


def own_each(user: User, item_ids: Sequence[str], own: Own) -> list[tuple[str, str]]:
    """Do this to each item in a transaction of its own: its id, and why it was refused (empty: done). Raises
    `NothingChosen`."""
    return [(item_id, _refusal(user, item_id, own)) for item_id in chosen_items(item_ids)]


def chosen_items(item_ids: Sequence[str]) -> tuple[str, ...]:
    """Each once, in their order; what cannot be an id is none. Raises `NothingChosen`."""
    chosen = tuple(dict.fromkeys(item_id for item_id in item_ids if item_id.isprintable()))
    if not chosen:
        raise NothingChosen("No item is ticked: nothing was changed.")
    if len(chosen) > MOST_AT_ONCE:
        raise NothingChosen(f"At most {MOST_AT_ONCE} items at once: nothing was changed.")
    return chosen


def _refusal(user: User, item_id: str, own: Own) -> str:
    try:
        own(user, item_id)
    except NotVisible:
        return "There is no such item."
    except NotPermitted as refusal:
        return refusal.reason
    except DecisionRefused as refusal:
        return refusal.message
    except UnknownAssignee as refusal:
        return str(refusal)
    except Busy:
        return LOCKED
    return ""
