"""An operation that settles twice."""

from __future__ import annotations

from ledger import lifecycle
from ledger.models import Settlement
from ledger.transactions import durable
from tests.support import make
from tests.support.cast import Cast


def failed_first(people: Cast) -> str:
    """A person says that it did not happen; the operation."""
    attempt = make.for_a_person(people.key)
    item, by = make.item_of(attempt).pk, people.operator
    durable(lambda: lifecycle.confirm_did_not_happen(item_id=item, by=by, why="not there"))
    return attempt.operation_id


def confirmed_after_all(people: Cast, operation_id: str) -> None:
    """Its agent brings a receipt, and a person believes it."""
    attempt = Settlement.objects.get(operation=operation_id, number=1).attempt
    make.reported(people.key, attempt, "succeeded", result_ref="t-9")
    item, by = make.item_of(attempt).pk, people.operator
    durable(
        lambda: lifecycle.decide_conflict(item_id=item, by=by, answer="happened", why="seen", reference="t-9")
    )
