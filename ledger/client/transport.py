"""The client's own calls to the ledger: repeated until answered or given up, never taken for an answer.

Every call of the API may be repeated with the same content, so a lost answer is simply asked for again.
What an agent sends to its provider never passes through here and is never repeated.
"""

import json
import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from ledger.client.answers import Reply, unreadable
from ledger.rules.backoff import backoff_s
from ledger.rules.canonical import MalformedJson, read_json

MAX_ANSWER = 16_777_216
MAX_DEPTH = 48  # arguments may be 32 deep and stand inside an answer
FIRST_WAIT_S, MOST_WAIT_S = 0.2, 5.0


@dataclass(frozen=True)
class Missed:
    """No answer this time, and how long to wait before the next try where the ledger said so."""

    why: str
    wait_s: float | None = None
    again: bool = True


class Transport:
    """One ledger's address and key. Threads may share it; a forked process gets connections of its own."""

    def __init__(
        self,
        url: str,
        api_key: str,
        *,
        timeout: float,
        tries: int,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"the ledger's address must begin with http:// or https://, not {url[:20]!r}")
        if not api_key:
            raise ValueError("an API key is needed: create_agent_key prints one")
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {api_key}", "Accept": "application/json"}
        self._timeout = timeout
        self._tries = tries
        self._sleep = sleep
        self._http: httpx.Client | None = None
        self._opened_by = 0

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Reply:
        """Ask, up to `tries` times. Raises LedgerUnavailable when there was no readable answer below 500."""
        content = None if body is None else _encoded(body)
        missed = Missed("it was not asked")
        for made in range(self._tries):
            answered = self._once(method, path, content)
            if isinstance(answered, Reply):
                return answered
            missed = answered
            wait_s = self._wait_s(made, missed)
            if wait_s is None:
                break
            self._sleep(wait_s)
        raise unreadable(missed.why)

    def close(self) -> None:
        if self._http is not None and self._opened_by == os.getpid():
            self._http.close()
        self._http = None

    def _wait_s(self, made: int, missed: Missed) -> float | None:
        """How long until the next try; None when there is to be none."""
        if not missed.again or made + 1 >= self._tries or (missed.wait_s or 0) > MOST_WAIT_S:
            return None
        roll = random.random()  # noqa: S311  (spreads tries, guards nothing)
        return max(missed.wait_s or 0, backoff_s(made, first_s=FIRST_WAIT_S, most_s=MOST_WAIT_S, roll=roll))

    def _once(self, method: str, path: str, content: bytes | None) -> Reply | Missed:
        headers = {} if content is None else {"Content-Type": "application/json"}
        try:
            answer = self._client().request(method, path, content=content, headers=headers)
        except httpx.HTTPError as error:
            return Missed(f"no answer: {type(error).__name__}")
        if answer.status_code == 429 or answer.status_code >= 500:
            again = _object_or_empty(answer).get("retryable") is not False
            return Missed(f"it answered {answer.status_code}", _retry_after_s(answer), again)
        if 200 <= answer.status_code < 300:
            return _successful(answer)
        return Reply(answer.status_code, _object_or_empty(answer), _retry_after_s(answer))

    def _client(self) -> httpx.Client:
        if self._http is None or self._opened_by != os.getpid():
            # no proxies or credentials from the environment: a key goes to this address and nowhere else
            self._http = httpx.Client(
                base_url=f"{self._url}/api/v1",
                headers=self._headers,
                timeout=self._timeout,
                trust_env=False,
                follow_redirects=False,
            )
            self._opened_by = os.getpid()
        return self._http


def _encoded(body: Mapping[str, Any]) -> bytes:
    """Compact: the ledger takes 256 kB, and blanks would count."""
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _successful(answer: httpx.Response) -> Reply | Missed:
    try:
        body = read_json(answer.content, max_bytes=MAX_ANSWER, max_depth=MAX_DEPTH)
    except MalformedJson as error:
        return Missed(f"its answer cannot be read: {error}", again=False)
    return Reply(answer.status_code, body, _retry_after_s(answer))


def _object_or_empty(answer: httpx.Response) -> dict[str, Any]:
    try:
        return read_json(answer.content, max_bytes=MAX_ANSWER, max_depth=MAX_DEPTH)
    except MalformedJson:
        return {}


def _retry_after_s(answer: httpx.Response) -> float | None:
    said = answer.headers.get("Retry-After", "")
    return float(said) if said.isascii() and said.isdigit() else None
