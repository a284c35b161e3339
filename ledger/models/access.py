"""What was done to who may do what: rights of people, agents and their keys, policies."""

from __future__ import annotations

from django.db import models
from django.db.models import F

from ledger.models import triggers
from ledger.models.base import TenantRow
from ledger.models.people import Agent, User
from ledger.rules.vocabulary import AccessChangeKind


class AccessChange(TenantRow):
    """One line of what changed about access in a tenant, by whom, to whom and why.

    `by` None: somebody at the machine itself. `person` or `agent`: whom it is about; a policy is about
    everybody, and names neither. `data` is JSON: what was given or taken, and what fell with it.
    """

    kind = models.CharField(max_length=32, choices=[(k.value, k.value) for k in AccessChangeKind])
    by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    person = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    agent = models.ForeignKey(Agent, models.PROTECT, null=True, related_name="+", db_constraint=False)
    data = models.JSONField(default=dict)
    why = models.CharField(max_length=4000, blank=True, default="")
    at = models.DateTimeField()

    class Meta:
        indexes = (
            models.Index("tenant", F("at").desc(), F("id").desc(), name="access_changes_by_age"),
            models.Index("tenant", "person", F("at").desc(), name="access_changes_of_person"),
        )
        triggers = triggers.append_only()
