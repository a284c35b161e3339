"""The client's own calls to the ledger: repeated until answered or given up, never taken for an answer.

Every call of the API may be repeated with the same content, so a lost answer is simply asked for again.
What an agent sends to its provider never passes through here and is never repeated.
"""

import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import httpx

from ledger.client.answers import Reply, slug_of, unreadable
from ledger.client.io import Io, Request
from ledger.rules.backoff import backoff_s
from ledger.rules.canonical import MalformedJson, read_json

MAX_ANSWER = 16_777_216
MAX_DEPTH = 48  # arguments may be 32 deep and stand inside an answer
FIRST_WAIT_S, MOST_WAIT_S = 0.2, 5.0
OF_THE_WAY = frozenset({"bad-request", "method-not-allowed", "length-required", "unsupported-media-type"})
"""The ledger's words about how a call came to it, such as under a host it does not answer for: the client
sends no such call, so something on the way is wrong, and not what was said."""
_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True)
class Missed:
    """No answer this time, and how long to wait before the next try where the ledger said so."""

    why: str
    wait_s: float | None = None
    again: bool = True
    status: int = 0


class Transport:
    """Calls through an `Io`, each up to `tries` times."""

    def __init__(self, io: Io, *, tries: int) -> None:
        self.io = io
        self._tries = tries

    async def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        tries: int | None = None,
        timeout_s: float | None = None,
        wait_s: int | None = None,
    ) -> Reply:
        """Ask. Raises LedgerUnavailable when there was no readable answer below 500."""
        request = Request(method, path, None if body is None else _encoded(body), timeout_s, wait_s)
        missed = Missed("it was not asked")
        left = self._tries if tries is None else tries
        for made in range(left):
            answered = await self._once(request)
            if isinstance(answered, Reply):
                return answered
            missed = answered
            pause_s = _pause_s(made, missed) if made + 1 < left else None
            if pause_s is None:
                break
            await self.io.pause(pause_s)
        raise unreadable(missed.why, status=missed.status)

    async def _once(self, request: Request) -> Reply | Missed:
        asked_at_s = self.io.monotonic_s()
        try:
            answer = await self.io.send(request)
        except httpx.HTTPError as error:
            return Missed(f"no answer: {type(error).__name__}")
        read = read_answer(answer)
        return replace(read, asked_at_s=asked_at_s) if isinstance(read, Reply) else read


def read_answer(answer: httpx.Response) -> Reply | Missed:
    """What was answered, as far as it can be relied on."""
    if answer.status_code == 429 or answer.status_code >= 500:
        again = _object_or_empty(answer).get("retryable") is not False
        why = f"it answered {answer.status_code}"
        return Missed(why, _retry_after_s(answer), again, answer.status_code)
    if 200 <= answer.status_code < 300:
        return _successful(answer)
    body = _object_or_empty(answer)
    if answer.status_code >= 400 and not _is_the_ledgers(answer, body):
        return Missed(f"{answer.status_code}, not in its words", status=answer.status_code)
    if slug_of(body) in OF_THE_WAY:
        why = f"it answered {answer.status_code}: {body.get('detail')}"
        return Missed(why, again=False, status=answer.status_code)
    return Reply(answer.status_code, body, _retry_after_s(answer))


def _is_the_ledgers(answer: httpx.Response, body: Mapping[str, Any]) -> bool:
    """Is this a problem in the ledger's words? A proxy before it may answer anything in its place."""
    kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    return kind == "application/problem+json" and bool(slug_of(body))


def _pause_s(made: int, missed: Missed) -> float | None:
    """How long until the next try; None when there is to be none."""
    if not missed.again or (missed.wait_s or 0) > MOST_WAIT_S:
        return None
    roll = random.random()  # noqa: S311  (spreads tries, guards nothing)
    return max(missed.wait_s or 0, backoff_s(made, first_s=FIRST_WAIT_S, most_s=MOST_WAIT_S, roll=roll))


def _encoded(body: Mapping[str, Any]) -> bytes:
    """Compact: the ledger takes 256 kB, and blanks would count."""
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def sendable(said: Any) -> Any:
    """A report's body with U+FFFD for what no JSON text can carry and no ledger would take: NUL, and half a
    surrogate pair, as in the name of a file. A fact is not lost for a letter."""
    if isinstance(said, Mapping):
        return {sendable(name): sendable(value) for name, value in said.items()}
    return _UNSENDABLE.sub("\ufffd", said) if isinstance(said, str) else said


def _successful(answer: httpx.Response) -> Reply | Missed:
    try:
        body = read_json(answer.content, max_bytes=MAX_ANSWER, max_depth=MAX_DEPTH)
    except MalformedJson as error:
        return Missed(f"its answer cannot be read: {error}", again=False)
    return Reply(answer.status_code, body, _retry_after_s(answer), answer.headers.get("Date", ""))


def _object_or_empty(answer: httpx.Response) -> dict[str, Any]:
    try:
        return read_json(answer.content, max_bytes=MAX_ANSWER, max_depth=MAX_DEPTH)
    except MalformedJson:
        return {}


def _retry_after_s(answer: httpx.Response) -> float | None:
    said = answer.headers.get("Retry-After", "")
    return float(said) if said.isascii() and said.isdigit() else None
