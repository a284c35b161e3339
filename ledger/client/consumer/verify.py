"""Is this from the ledger, whole and fresh? Standard Webhooks signatures over exactly the bytes received.

Source: standardwebhooks.com, specification 1.0.0. Whatever is wrong with a message is one error.
"""

import base64
import hashlib
import hmac
from collections.abc import Iterable, Mapping

from ledger.client.clock import wall_clock_s
from ledger.client.consumer.event import Event, read_event
from ledger.client.consumer.headers import Headers, Unreadable, ours

TOLERANCE_S = 300
_PREFIX = "whsec_"
_LONGEST_TIMESTAMP = 12
_MOST_SIGNATURES = 20


class NotFromTheLedger(Exception):
    """Do not act on it; answer 400. The message says why and repeats nothing that was received."""


class Verifier:
    """Checks messages by one secret, or by several while one is being replaced."""

    def __init__(self, secrets: str | Iterable[str], *, tolerance_s: float = TOLERANCE_S) -> None:
        """Raises ValueError where a secret is not `whsec_` and base64."""
        texts = [secrets] if isinstance(secrets, str) else list(secrets)
        if not texts:
            raise ValueError("a verifier needs at least one secret")
        self._secrets = [_secret(text) for text in texts]
        self._tolerance_s = tolerance_s

    def verify(self, headers: Headers, body: bytes, *, now: float | None = None) -> Event:
        """The event, or `NotFromTheLedger`. `body` is what came over the wire, not JSON written anew; `now`
        is seconds since 1970, this machine's clock where left out."""
        signed = self.check(headers, body, now=now)
        try:
            return read_event(signed, body)
        except ValueError:
            raise NotFromTheLedger("the signature fits, but the body is no event of the ledger") from None

    def check(self, headers: Headers, body: bytes, *, now: float | None = None) -> Mapping[str, str]:
        """The signature and its time alone, of any Standard Webhooks message; our headers in lower case."""
        if not isinstance(body, bytes | bytearray):
            raise TypeError(
                f"body is the bytes of the request as they arrived, not {type(body).__name__}: text or JSON "
                "that was parsed and written anew is not what was signed"
            )
        named = _ours(headers)
        webhook_id, timestamp = _present(named, "webhook-id"), _present(named, "webhook-timestamp")
        self._check_fresh(timestamp, wall_clock_s() if now is None else now)
        self._check_signature(_present(named, "webhook-signature"), webhook_id, timestamp, body)
        return named

    def _check_fresh(self, timestamp: str, now: float) -> None:
        if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= _LONGEST_TIMESTAMP):
            raise NotFromTheLedger("webhook-timestamp is no whole number of seconds")
        if abs(now - int(timestamp)) > self._tolerance_s:
            raise NotFromTheLedger("webhook-timestamp is too far from this machine's clock")

    def _check_signature(self, header: str, webhook_id: str, timestamp: str, body: bytes) -> None:
        signed = b".".join((webhook_id.encode(), timestamp.encode(), body))
        expected = [hmac.digest(secret, signed, hashlib.sha256) for secret in self._secrets]
        given = [_decoded(part) for part in header.split(" ")[:_MOST_SIGNATURES]]
        if not any(hmac.compare_digest(ours, theirs) for ours in expected for theirs in given):
            raise NotFromTheLedger("no signature of webhook-signature fits this body and a known secret")


def _secret(text: str) -> bytes:
    try:
        secret = base64.b64decode(text.strip().removeprefix(_PREFIX), validate=True)
    except ValueError as error:
        raise ValueError("a secret is whsec_ and base64") from error
    if not secret:
        raise ValueError("a secret is not empty")
    return secret


def _ours(headers: Headers) -> dict[str, str]:
    try:
        return ours(headers)
    except Unreadable as why:
        raise NotFromTheLedger(str(why)) from None


def _present(headers: Mapping[str, str], name: str) -> str:
    if not (value := headers.get(name, "")):
        raise NotFromTheLedger(f"the header {name} is missing")
    return value


def _decoded(part: str) -> bytes:
    """The signature of one `v1,<base64>`; nothing for another version or what cannot be read."""
    version, _, text = part.partition(",")
    try:
        return base64.b64decode(text, validate=True) if version == "v1" else b""
    except ValueError:
        return b""
