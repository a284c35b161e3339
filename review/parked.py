"""What a person says about a parked fact: rights asked, then the ledger's verb called, in one transaction.

Each raises `NotVisible`, `NotPermitted` and the ledger's `DecisionRefused`.
"""

from __future__ import annotations

from collections.abc import Callable

from ledger import lifecycle
from ledger.models import ParkedNote, User
from ledger.transactions import durable
from review.door import require_decider, to_write
from review.queries.parked import enter_fact


def note(user: User, fact_id: str, *, why: str) -> ParkedNote:
    """Leave a note for others."""
    return _as_decider(user, fact_id, lambda: lifecycle.note_parked(fact_id=fact_id, by=user, why=why))


def dismiss(user: User, fact_id: str, *, why: str) -> ParkedNote:
    """Say that it needs nobody's attention any more. It is joined all the same, should its operation come."""
    return _as_decider(user, fact_id, lambda: lifecycle.dismiss_parked(fact_id=fact_id, by=user, why=why))


def _as_decider(user: User, fact_id: str, verb: Callable[[], ParkedNote]) -> ParkedNote:
    def decide() -> ParkedNote:
        fact, rights = to_write(lambda: enter_fact(user, fact_id))
        require_decider(fact.tenant, rights)
        return verb()

    return durable(decide)
