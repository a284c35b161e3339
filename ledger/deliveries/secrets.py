"""The secrets that sign deliveries: 32 random bytes, sealed at rest, shown once, rotated with overlap."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db.models import Q

from ledger.models import Destination, DestinationSecret
from ledger.rules.webhooks import SECRET_BYTES, secret_text
from ledger.transactions import require_transaction


class CannotUnseal(Exception):
    """A stored secret was sealed with a key that LEDGER_SEALING_KEYS does not name."""


def give_secret(destination: Destination, *, now: datetime, overlap: timedelta = timedelta(0)) -> str:
    """Make a new secret and return it as it is shown, once. The one before signs beside it until the overlap
    is over, so that the consumer can change hands without refusing a delivery."""
    require_transaction()
    destination.secrets.filter(retires_at=None).update(retires_at=now + overlap)
    secret = secrets.token_bytes(SECRET_BYTES)
    DestinationSecret.objects.create(
        tenant_id=destination.tenant_id, destination=destination, sealed=seal(secret), created_at=now
    )
    return secret_text(secret)


def live_secrets(destination_id: str, *, now: datetime) -> tuple[bytes, ...]:
    """What signs now, the newest first. Raises CannotUnseal."""
    live = DestinationSecret.objects.filter(
        Q(retires_at=None) | Q(retires_at__gt=now), destination_id=destination_id
    )
    return tuple(unseal(bytes(secret.sealed)) for secret in live.order_by("-created_at", "-pk"))


def seal(secret: bytes) -> bytes:
    return _fernet().encrypt(secret)


def unseal(sealed: bytes) -> bytes:
    try:
        return _fernet().decrypt(sealed)
    except InvalidToken:
        raise CannotUnseal("its secret was sealed with a key not in LEDGER_SEALING_KEYS") from None


def _fernet() -> MultiFernet:
    """The first key seals; every one unseals."""
    return MultiFernet([Fernet(key) for key in settings.LEDGER_SEALING_KEYS])
