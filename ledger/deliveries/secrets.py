"""The secrets that sign deliveries: 32 random bytes, sealed at rest, shown once, rotated with overlap."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import lru_cache

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
    """What signs at this time, as `unsealed` tells it. Raises CannotUnseal."""
    live = DestinationSecret.objects.filter(
        Q(retires_at=None) | Q(retires_at__gt=now), destination_id=destination_id
    )
    by_age = live.order_by(F("retires_at").desc(nulls_first=True), "-pk")
    return unsealed([bytes(sealed) for sealed in by_age.values_list("sealed", flat=True)])


def unsealed(by_age: Sequence[bytes]) -> tuple[bytes, ...]:
    """The secrets of a destination, the newest first as given, always at least one; one that retires and
    cannot be unsealed is left out. Raises CannotUnseal."""
    if not by_age:
        raise CannotUnseal("the destination has no secret: rotate it to give it one")
    newest, *retiring = by_age
    return (unseal(newest), *_unsealable(retiring))


def _unsealable(retiring: Iterable[bytes]) -> Iterator[bytes]:
    for sealed in retiring:
        with suppress(CannotUnseal):
            yield unseal(sealed)


def seal(secret: bytes) -> bytes:
    return _fernet(tuple(settings.LEDGER_SEALING_KEYS)).encrypt(secret)


def unseal(sealed: bytes) -> bytes:
    return _unseal(sealed, tuple(settings.LEDGER_SEALING_KEYS))


@lru_cache(maxsize=1024)
def _unseal(sealed: bytes, keys: tuple[str, ...]) -> bytes:
    """Unsealing costs more than all else of a signature; what is sealed never changes, only which is live."""
    try:
        return _fernet(keys).decrypt(sealed)
    except InvalidToken:
        raise CannotUnseal("its secret was sealed with a key not in LEDGER_SEALING_KEYS") from None


def _fernet(keys: tuple[str, ...]) -> MultiFernet:
    """The first key seals; every one unseals. Raises CannotUnseal where one is no key."""
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except ValueError:
        raise CannotUnseal("LEDGER_SEALING_KEYS holds no key, or something that is none") from None
