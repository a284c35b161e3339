"""What look-ups say of a provider itself: unreachable since when, and back again."""

from __future__ import annotations

from django.db.models import F

from ledger.models import Attempt, Provider
from ledger.policies import rule_of
from ledger.rules.reconcile import LookedUpKind
from ledger.rules.states import State
from ledger.transactions import database_clock, durable


def note_answer(provider: Provider, kind: LookedUpKind, *, refused_credential: str = "") -> None:
    """Keep the provider's health; its first readable answer makes all its attempts due. An answer to a
    credential that is not the right one is no readable one, and names what somebody has to mend."""
    durable(lambda: _note(provider, kind, refused_credential))


def _note(provider: Provider, kind: LookedUpKind, refused: str) -> None:
    row, now = Provider.objects.filter(pk=provider.pk), database_clock()
    if refused:
        row.filter(credential_refused_since=None).update(credential_refused_since=now)
        row.exclude(refused_credential=refused).update(refused_credential=refused[:100])
    if kind is LookedUpKind.UNAVAILABLE or refused:
        row.filter(unavailable_since=None).update(unavailable_since=now)
        row.update(failures=F("failures") + 1)
    elif kind is not LookedUpKind.ADAPTER_FAILED:
        came_back = row.exclude(unavailable_since=None).update(unavailable_since=None, failures=0)
        row.update(last_answer_at=now, refused_credential="", credential_refused_since=None)
        if came_back:
            _make_all_due(provider)


def _make_all_due(provider: Provider) -> None:
    waiting = Attempt.objects.filter(tenant_id=provider.tenant_id, state=State.UNKNOWN)
    asked = [
        attempt.pk
        for attempt in waiting.select_related("policy").only("pk", "tool", "policy")
        if rule_of(attempt).provider == provider.name
    ]
    Attempt.objects.filter(pk__in=asked, state=State.UNKNOWN).update(next_check_at=database_clock())
