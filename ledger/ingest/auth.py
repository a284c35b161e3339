"""Which key asks, and whether it may make this call at all. What it may *send* is authority's business."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from django.http import HttpRequest
from ninja.security import HttpBearer

from ledger.ingest.errors import Problem
from ledger.models import ApiKey
from ledger.rules.authority import Reason, as_told
from ledger.rules.keys import parse_api_key, secret_hash

REPORTS_AFTER_REVOCATION = timedelta(days=7)
NOTE_USE_EVERY = timedelta(minutes=1)

_NO_SECRET = secret_hash("")


class Call(Enum):
    """What a call needs of a key that is not in order."""

    ASKS_AUTHORITY = "asks authority"  # the verb itself answers with authority's reasons
    REPORT = "report"  # facts are always accepted
    EXTENDS = "extends"  # of what was dispatched before the key expired
    ORDINARY = "ordinary"


@dataclass(frozen=True)
class AskingKey:
    """An authenticated key, and the database's time when it was read."""

    key: ApiKey
    asked_at: datetime

    @property
    def is_revoked(self) -> bool:
        return self.key.revoked_at is not None

    @property
    def is_expired(self) -> bool:
        return self.key.expires_at <= self.asked_at


class KeyWithVerb(HttpBearer):
    """Authentication of one call: `request.auth` becomes the `ApiKey`, or a `Problem` is raised."""

    def __init__(self, verb: str, call: Call = Call.ORDINARY) -> None:
        super().__init__()
        self.verb = verb
        self.call = call

    def __call__(self, request: HttpRequest) -> Any:
        found = super().__call__(request)
        if found is None:
            raise Problem("unauthorized", headers={"WWW-Authenticate": 'Bearer realm="ledger"'})
        return found

    def authenticate(self, _request: HttpRequest, token: str) -> ApiKey | None:
        asking = find_key(token)
        if asking is None:
            return None
        check_in_order(asking, self.call)
        if self.verb not in asking.key.verbs:
            raise Problem("scope-refused", f"The key does not have the verb {self.verb}.")
        note_use(asking)
        return asking.key


def find_key(text: str) -> AskingKey | None:
    """The key with this text; None where its secret is wrong or it was revoked too long ago to report."""
    parts = parse_api_key(text)
    if parts is None:
        return None
    key = (
        ApiKey.objects.select_related("agent__tenant", "agent__owner")
        .annotate(asked_at=Now())
        .filter(key_id=parts.key_id)
        .first()
    )
    # An unknown id costs the same comparison as a wrong secret.
    right = hmac.compare_digest(key.secret_hash if key else _NO_SECRET, secret_hash(parts.secret))
    if key is None or not right:
        return None
    gone = key.revoked_at is not None and key.revoked_at + REPORTS_AFTER_REVOCATION <= key.asked_at
    return None if gone else AskingKey(key, key.asked_at)


def check_in_order(asking: AskingKey, call: Call) -> None:
    """Raise a `Problem` where this kind of call is not open to the key as it is now."""
    if call in (Call.ASKS_AUTHORITY, Call.REPORT):
        return
    agent = asking.key.agent
    refused = {
        Reason.AGENT_INACTIVE: call is Call.ORDINARY and not agent.is_active,
        Reason.OWNER_INACTIVE: call is Call.ORDINARY and not agent.owner.is_active,
        Reason.KEY_REVOKED: asking.is_revoked,
        Reason.KEY_EXPIRED: call is Call.ORDINARY and asking.is_expired,
    }
    reasons = [reason for reason, holds in refused.items() if holds]
    if reasons:
        raise Problem(reasons[0].value, facts=as_told(reasons))


def note_use(asking: AskingKey) -> None:
    """Remember roughly when a key was last used, without ever waiting for its row."""
    last = asking.key.last_used_at
    if last is not None and last + NOTE_USE_EVERY > asking.asked_at:
        return
    with transaction.atomic():
        free = ApiKey.objects.select_for_update(skip_locked=True, no_key=True, of=("self",))
        for key in free.filter(pk=asking.key.pk):
            key.last_used_at = asking.asked_at
            key.save(update_fields=["last_used_at"])
