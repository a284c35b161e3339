"""Presses that count once: what asks for a password again is bound to one item as it was shown."""

from __future__ import annotations

import secrets
from datetime import timedelta
from hashlib import sha256

from ledger.models import User
from ledger.transactions import database_clock, durable
from review.models import PressNonce

LASTS = timedelta(minutes=30)
_MOST_AT_ONCE = 50


def new_press(user: User, item_id: str, digest: str) -> str:
    """A token for one press about this item as shown now; the oldest of many unused ones go."""
    token = secrets.token_urlsafe(32)

    def make() -> None:
        PressNonce.objects.create(
            token_hash=_hashed(token), user=user, item_id=item_id, digest=digest, made_at=database_clock()
        )
        mine = PressNonce.objects.filter(user=user).order_by("-made_at", "-pk")
        PressNonce.objects.filter(pk__in=list(mine.values_list("pk", flat=True)[_MOST_AT_ONCE:])).delete()

    durable(make)
    return token


def use_press(user: User, token: str, item_id: str, digest: str) -> bool:
    """Use the token up. False: it was used before, is too old, or was made for somebody or something else."""

    def use() -> bool:
        made = PressNonce.objects.filter(
            token_hash=_hashed(token),
            user=user,
            item_id=item_id,
            digest=digest,
            made_at__gt=database_clock() - LASTS,
        )
        return made.delete()[0] == 1

    return durable(use)


def _hashed(token: str) -> str:
    return sha256(token.encode()).hexdigest()
