"""The key a provider sees, which is computed and never drawn, and the shape of an agent's API key."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field

from ledger.rules.canonical import canonical_bytes

_CHECK_DIGITS = 8
_LONGEST_API_KEY = 256

# The id has no underscore and the check is last, so a secret in base64url may contain one.
_API_KEY = re.compile(r"ilk_([0-9A-Za-z]{4,64})_([0-9A-Za-z_-]{43,128})_([0-9a-f]{8})", re.ASCII)


@dataclass(frozen=True)
class ApiKeyParts:
    """The id to look up and the secret to compare; the secret is kept out of every repr."""

    key_id: str
    secret: str = field(repr=False)


def idempotency_key(tenant_id: int | str, operation_key: str, generation: int) -> str:
    """The key every send of this generation shows the provider: the same after a crash or a restore."""
    return f"il-{_fixed_by('idempotency', str(tenant_id), operation_key, generation)}"


def correlation_id(tenant_id: int | str, operation_key: str) -> str:
    """The same for every send of an operation, whatever its generation, so that a look-up finds them all."""
    return f"ilc-{_fixed_by('correlation', str(tenant_id), operation_key)}"


def format_api_key(key_id: str, secret: str) -> str:
    """`ilk_<id>_<secret>_<check>`. Raises ValueError unless parse_api_key would read it back.

    `key_id` is 4–64 letters and digits; `secret` at least 32 random bytes as hex or base64url (43–128
    characters).
    """
    text = f"ilk_{key_id}_{secret}_{_check(key_id, secret)}"
    if parse_api_key(text) != ApiKeyParts(key_id, secret):
        raise ValueError("the id or the secret does not fit an API key")
    return text


def parse_api_key(text: object) -> ApiKeyParts | None:
    """The parts of a well-formed key, or None for everything else (a typo, a cut copy, any other object)."""
    if not isinstance(text, str) or len(text) > _LONGEST_API_KEY:
        return None
    found = _API_KEY.fullmatch(text)
    if found is None:
        return None
    key_id, secret, check = found.groups()
    return ApiKeyParts(key_id, secret) if hmac.compare_digest(check, _check(key_id, secret)) else None


def secret_hash(secret: str) -> str:
    """What is stored of a secret: 64 hex digits. It is random and long, so one SHA-256 is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _check(key_id: str, secret: str) -> str:
    """Tells a typo from an unknown key, and a scanner that it found a real one. Protects nothing."""
    return hashlib.sha256(f"{key_id}_{secret}".encode(errors="replace")).hexdigest()[:_CHECK_DIGITS]


def _fixed_by(*parts: str | int) -> str:
    return hashlib.sha256(canonical_bytes(list(parts))).hexdigest()[:48]
