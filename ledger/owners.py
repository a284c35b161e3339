"""Whose a question is when it opens: asked of the review app, which keeps the rules of ownership."""

from __future__ import annotations

from typing import Protocol

from ledger.models import ReviewGroup
from ledger.rules.ownership import Owned, Question


class Owners(Protocol):
    """Who knows the rules of ownership; called inside the transaction that opens the question."""

    def owner_of(self, question: Question, *, tenant_id: int) -> Owned:
        """The owner of such a question of this tenant."""
        ...


class _FirstTeam:
    def owner_of(self, question: Question, *, tenant_id: int) -> Owned:  # noqa: ARG002 - asks no rule
        return Owned(first_team_of(tenant_id))


_owners: Owners = _FirstTeam()


def register_owners(owners: Owners) -> None:
    """The review app answers from now on; until it does, everything is the first team's."""
    global _owners  # noqa: PLW0603
    _owners = owners


def owner_of(question: Question, *, tenant_id: int) -> Owned:
    return _owners.owner_of(question, tenant_id=tenant_id)


def first_team_of(tenant_id: int) -> int:
    """The id of the group that owns what nobody else does."""
    return ReviewGroup.objects.values_list("pk", flat=True).get(tenant_id=tenant_id, is_first_owner=True)
