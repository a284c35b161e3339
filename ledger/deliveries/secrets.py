"""The secrets that sign deliveries: 32 random bytes, sealed at rest, shown once, rotated with overlap."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db.models import F, Q

from ledger.models import Destination, DestinationSecret
from ledger.rules.webhooks import SECRET_BYTES, secret_text
from ledger.transactions import require_transaction


class CannotUnseal(Exception):
    """Nothing can sign: there is no secret, or none that LEDGER_SEALING_KEYS reads; the text says which."""


def give_secret(destination: Destination, *, now: datetime, overlap: timedelta = timedelta(0)) -> str:
    """Make a new secret and return it as it is shown, once. Those before sign beside it until the overlap is
    over at most, so that the consumer can change hands without refusing a delivery."""
    require_transaction()
    Destination.objects.select_for_update(no_key=True).get(pk=destination.pk)
    ends_at = now + overlap
    destination.secrets.filter(Q(retires_at=None) | Q(retires_at__gt=ends_at)).update(retires_at=ends_at)
    secret = secrets.token_bytes(SECRET_BYTES)
    DestinationSecret.objects.create(
        tenant_id=destination.tenant_id, destination=destination, sealed=seal(secret), created_at=now
    )
    return secret_text(secret)


def live_secrets(destination_id: str, *, now: datetime) -> tuple[bytes, ...]:
    """What signs now, the newest first, always at least one; one that retires and cannot be unsealed is left
    out. Raises CannotUnseal."""
    live = DestinationSecret.objects.filter(
        Q(retires_at=None) | Q(retires_at__gt=now), destination_id=destination_id
    )
    by_age = list(live.order_by(F("retires_at").desc(nulls_first=True), "-pk"))
    if not by_age:
        raise CannotUnseal("the destination has no secret: rotate it to give it one")
    newest, *retiring = by_age
    return (unseal(bytes(newest.sealed)), *_unsealable(retiring))


def _unsealable(retiring: Iterable[DestinationSecret]) -> Iterator[bytes]:
    for secret in retiring:
        with suppress(CannotUnseal):
            yield unseal(bytes(secret.sealed))


def seal(secret: bytes) -> bytes:
    return _fernet().encrypt(secret)


def unseal(sealed: bytes) -> bytes:
    try:
        return _fernet().decrypt(sealed)
    except InvalidToken:
        raise CannotUnseal("its secret was sealed with a key not in LEDGER_SEALING_KEYS") from None


def _fernet() -> MultiFernet:
    """The first key seals; every one unseals. Raises CannotUnseal where one is no key."""
    try:
        return MultiFernet([Fernet(key) for key in settings.LEDGER_SEALING_KEYS])
    except ValueError:
        raise CannotUnseal("LEDGER_SEALING_KEYS holds no key, or something that is none") from None
