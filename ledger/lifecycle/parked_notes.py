"""What people say about facts that never matched. It loses nothing: a dismissed fact is joined as well."""

from __future__ import annotations

from ledger.lifecycle.values import DecisionRefused
from ledger.models import ParkedFact, ParkedNote, User
from ledger.transactions import database_clock, require_transaction


def note_parked(*, fact_id: str, by: User, why: str) -> ParkedNote:
    """Leave a note on a parked fact."""
    fact = _locked(fact_id)
    return ParkedNote.objects.create(tenant_id=fact.tenant_id, fact=fact, by=by, why=why, at=database_clock())


def dismiss_parked(*, fact_id: str, by: User, why: str) -> ParkedNote:
    """Say that a fact needs nobody's attention any more: it makes room. Raises `DecisionRefused` where
    somebody was first, or where it has found its attempt."""
    fact, now = _locked(fact_id), database_clock()
    if fact.joined_at is not None:
        raise DecisionRefused("joined", "It has found its attempt meanwhile: there is nothing to dismiss.")
    if fact.dismissed_at is not None:
        raise DecisionRefused("dismissed", "Somebody has dismissed it already.")
    fact.dismissed_at = now
    fact.save(update_fields=["dismissed_at"])
    return ParkedNote.objects.create(
        tenant_id=fact.tenant_id, fact=fact, by=by, dismisses=True, why=why, at=now
    )


def _locked(fact_id: str) -> ParkedFact:
    require_transaction()
    return ParkedFact.objects.select_for_update().get(pk=fact_id)
