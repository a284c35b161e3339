"""Signed messages, good and bad, for whoever writes a verifier: `ledger/client/consumer/vectors.json`.

`python -m tests.support.vectors` writes that file anew: the same bytes each time. `vectors(at)` are the same
messages at another time, for receivers that ask the real clock.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ledger.rules.states import Outcome
from ledger.rules.webhooks import Told, cloud_event, headers, secret_bytes, secret_text, signature

FILE = Path(__file__).resolve().parents[2] / "ledger/client/consumer/vectors.json"
AT = datetime(2026, 11, 29, 12, tzinfo=UTC)
SECRET, OTHER = hashlib.sha256(b"of the vectors").digest(), hashlib.sha256(b"of somebody else").digest()
ID = "msg_01vectors"
ABOUT = (
    "A verifier that knows `secret`, at the time `now` (seconds since 1970), accepts every message of `good` "
    "and refuses every one of `bad`. `body` is text: verify its UTF-8 bytes, as they are. Where `event` is "
    "false, the signature is good and the body no event of the ledger."
)


@dataclass(frozen=True)
class Vector:
    """One message. `now`: seconds since 1970 at the verifier."""

    name: str
    headers: Mapping[str, str]
    body: str
    now: int
    secret: str = secret_text(SECRET)
    event: bool = True

    def document(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "secret": self.secret,
            "now": self.now,
            "event": self.event,
            "headers": dict(self.headers),
            "body": self.body,
        }


KNOWN = Vector(
    name="the test vector of the Standard Webhooks reference libraries",
    headers={
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    },
    body='{"test": 2432232314}',
    now=1614265330,
    secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    event=False,
)


@dataclass(frozen=True)
class Maker:
    """Messages sent at `at`, and read there at the same time."""

    at: datetime

    def body(self, outcome: Outcome = Outcome.CONFIRMED, **told: Any) -> bytes:
        facts = {
            "webhook_id": ID,
            "tenant_slug": "acme",
            "operation_id": "op_01vectors",
            "operation_key": "invoice:7:Zürich/é",
            "attempt_id": "att_01vectors",
            "tool": "email.send",
            "number": 2,
            "result_ref": "re_1",
        }
        return cloud_event(Told(**{**facts, **told}, outcome=outcome, settled_at=AT))

    def sent(self, body: bytes, *secrets: bytes, late_s: int = 0) -> dict[str, str]:
        """As the sender signs it; `late_s` before the time it is read."""
        return headers(ID, at=self.at - timedelta(seconds=late_s), body=body, secrets=secrets or [SECRET])

    def vector(self, name: str, sent: Mapping[str, str], body: bytes) -> Vector:
        return Vector(name, sent, body.decode(), int(self.at.timestamp()))

    def good(self) -> Iterator[Vector]:
        for outcome, reference in GOOD_OUTCOMES:
            body = self.body(outcome, result_ref=reference)
            yield self.vector(f"{outcome}, with {reference or 'no'} reference", self.sent(body), body)
        body = self.body()
        signed = self.sent(body)["webhook-signature"]
        written = {
            "a replay by a person": {**self.sent(body), "Ledger-Replay": "true"},
            "an old secret beside the new one": self.sent(body, OTHER, SECRET),
            "a new secret beside the old one": self.sent(body, SECRET, OTHER),
            "signatures of other versions beside it": {
                **self.sent(body), "webhook-signature": f"v1a,{signed[3:]} v9,AAAA {signed}",
            },
            "four minutes on the way": self.sent(body, late_s=240),
            "a clock four minutes behind": self.sent(body, late_s=-240),
        }  # fmt: skip
        for name, sent in written.items():
            yield self.vector(name, sent, body)
        for name, spelled in spellings(body).items():
            yield self.vector(name, self.sent(spelled), spelled)
        unknown = _changed(body, type="ledger.operation.archived.v1")
        yield self.vector("a type that does not exist yet", self.sent(unknown), unknown)

    def bad(self) -> Iterator[Vector]:
        body = self.body()
        sent = self.sent(body)
        for name, replaced in self._bad_headers(body).items():
            changed = {**sent, **replaced}
            yield self.vector(name, {k: v for k, v in changed.items() if v is not MISSING}, body)
        for name, altered in _bad_bodies(body).items():
            yield self.vector(name, sent, altered)

    def _bad_headers(self, body: bytes) -> dict[str, dict[str, str]]:
        signed, timestamp = self.sent(body)["webhook-signature"], str(int(self.at.timestamp()))
        raw = base64.b64decode(signed.removeprefix("v1,"))
        shown_as_key = secret_text(SECRET).encode()
        bare = hmac.digest(SECRET, body, hashlib.sha256)
        signatures = {
            "signed with another secret": signature(OTHER, ID, timestamp, body),
            "signed with the secret's text instead of its bytes": signature(
                shown_as_key, ID, timestamp, body
            ),
            "signed without id and time": "v1," + base64.b64encode(bare).decode(),
            "signed for another id": signature(SECRET, "msg_02vectors", timestamp, body),
            "signed for another time": signature(SECRET, ID, str(int(timestamp) - 1), body),
            "no signature": MISSING,
            "an empty signature": "",
            "an empty signature of version 1": "v1,",
            "no version": signed.removeprefix("v1,"),
            "the version alone": "v1",
            "another version": signed.replace("v1,", "v2,"),
            "the asymmetric version": signed.replace("v1,", "v1a,"),
            "hexadecimal instead of base64": "v1," + raw.hex(),
            "half of it": signed[:-22],
            "a byte of it changed": "v1," + base64.b64encode(bytes([raw[0] ^ 1]) + raw[1:]).decode(),
            "no base64": "v1,****",
        }
        others = {
            "no id": {"webhook-id": MISSING},
            "another id": {"webhook-id": "msg_02vectors"},
            "no time": {"webhook-timestamp": MISSING},
            "another time": {"webhook-timestamp": str(int(timestamp) + 1)},
            "a time that is a word": {"webhook-timestamp": "now"},
            "an endless time": {"webhook-timestamp": "9" * 400},
            "a time that is negative": {"webhook-timestamp": f"-{timestamp}"},
            "six minutes and forty seconds old": self.sent(body, late_s=400),
            "six minutes and forty seconds ahead": self.sent(body, late_s=-400),
        }
        return {**{name: {"webhook-signature": text} for name, text in signatures.items()}, **others}


GOOD_OUTCOMES: tuple[tuple[Outcome, str], ...] = tuple(
    (outcome, "re_1" if outcome is Outcome.CONFIRMED else "")
    for outcome in Outcome
    if outcome is not Outcome.OPEN
)
MISSING = "(missing)"


def spellings(body: bytes) -> dict[str, bytes]:
    """The same JSON in other bytes, each of them good where it is what was signed."""
    document = json.loads(body)
    loose = json.dumps(document, ensure_ascii=True, indent=1).replace('"sequence": 2', '"sequence":2  ')
    return {
        "JSON with spaces, escapes and line breaks": loose.replace("/", "\\/").encode(),
        "JSON as Python writes it": json.dumps(document).encode(),
        "JSON with its keys the other way round": _reversed(document),
        "numbers that do not survive being written anew": _changed(body, exact=0).replace(
            b'"exact":0', b'"exact":[1.0,1e2,0.10,12345678901234567890.123456789]'
        ),
    }


def _bad_bodies(body: bytes) -> dict[str, bytes]:
    return {
        "another outcome": body.replace(b'"outcome":"confirmed"', b'"outcome":"failed"'),
        "another settlement": body.replace(b'"sequence":2', b'"sequence":3'),
        "cut short": body[:-1],
        "empty": b"",
        "a line break at its end": body + b"\n",
        **{f"{name}, signed otherwise": spelled for name, spelled in spellings(body).items()},
    }


def _changed(body: bytes, **changed: Any) -> bytes:
    document = {**json.loads(body), **changed}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _reversed(document: Mapping[str, Any]) -> bytes:
    return json.dumps(
        dict(reversed(list(document.items()))), ensure_ascii=False, separators=(",", ":")
    ).encode()


def vectors(at: datetime = AT) -> dict[str, list[Vector]]:
    """`good` and `bad`, but for the known one, whose time is its own."""
    maker = Maker(at)
    return {"good": list(maker.good()), "bad": list(maker.bad())}


def text() -> str:
    """The file."""
    assert secret_bytes(KNOWN.secret)
    made = vectors()
    document = {
        "about": ABOUT,
        "good": [vector.document() for vector in (KNOWN, *made["good"])],
        "bad": [vector.document() for vector in made["bad"]],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
