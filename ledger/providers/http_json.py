"""The `http` adapter: asks any provider with a JSON API what became of a request, as its configuration says.

The one thing it must never do is take "I could not see" for "it is not there". So *absent* needs every page
read to the end and, where a canary is configured, something known to exist seen by the same key; everything
half-read, unknown or contradictory is *unavailable*. A status word nobody configured still means that the
thing exists: it counts as in progress, until somebody configures what it means.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from ledger import http
from ledger.providers.base import AdapterMisconfigured, Question
from ledger.providers.configuration import Canary, Configuration, RecordState, parse_configuration
from ledger.providers.pace import pace
from ledger.providers.templates import Unaskable, filled, filled_and_encoded
from ledger.rules.canonical import MalformedJson, canonical_bytes, read_json
from ledger.rules.pointers import pointer
from ledger.rules.reconcile import LookedUp, LookedUpKind, Record

MOST_KEPT_BYTES = 4_096
LONGEST_WORD = 60
LONGEST_DETAIL = 500
CANARY_UNSEEN = "the canary was not seen either: this key may not look, or looks at somebody else's account"


class Unreadable(Exception):
    """No whole, readable answer; says nothing about what happened."""


class HttpAdapter:
    """One provider's JSON API. Holds the secret for as long as it lives, and shows it to nobody."""

    def __init__(self, configuration: Configuration, *, secret: str = "") -> None:
        self._configuration = configuration
        self._secret = secret

    @classmethod
    def configured(cls, config: object) -> Self:
        """From the stored configuration and the environment. Raises AdapterMisconfigured."""
        configuration = parse_configuration(config)
        auth = configuration.auth
        if auth is None:
            return cls(configuration)
        secret = os.environ.get(auth.env, "")
        if not secret:
            raise AdapterMisconfigured(
                "/auth/env", f"{auth.env} is not set; set it where web and worker are started"
            )
        return cls(configuration, secret=secret)

    def look_up(self, question: Question) -> LookedUp:
        """Ask for what carries this operation's marks, page by page, and say what was found."""
        try:
            records, unknown_words = self._records(question)
            if records:
                return LookedUp(LookedUpKind.FOUND, records, detail=unknown_words)
            seen = self._canary_seen()
            return LookedUp(
                LookedUpKind.ABSENT, canary_seen=seen, detail=CANARY_UNSEEN if seen is False else ""
            )
        except Unaskable as why:
            return LookedUp(LookedUpKind.NO_LOOKUP, detail=str(why))
        except (Unreadable, http.NotConnected, http.NoAnswer) as why:
            return LookedUp(LookedUpKind.UNAVAILABLE, detail=str(why))

    def _records(self, question: Question) -> tuple[tuple[Record, ...], str]:
        """Every record that is this operation's, and which status words nobody knows."""
        configuration = self._configuration
        if question.args is None and set(configuration.content) != {"args_hash"}:
            raise Unaskable("only a hash of the arguments is known, so what is found could not be compared")
        wanted = {path: filled(text, question) for path, text in configuration.match_where.items()}
        found = [
            item
            for page in self._pages(question)
            for item in self._items(page)
            if all(_word(pointer(item, path)) == text for path, text in wanted.items())
        ]
        unknown = sorted(
            {word for item in found if self._state(item) is None for word in [self._status(item)]}
        )
        detail = f"status words that are not configured: {', '.join(unknown)}" if unknown else ""
        return tuple(self._record(item, question) for item in found), detail[:LONGEST_DETAIL]

    def _pages(self, question: Question) -> Iterator[object]:
        """Every page to the last; Unreadable when the last is not reached."""
        template = self._configuration.request
        url = filled_and_encoded(template.url, question)
        headers = {name: filled_and_encoded(text, question) for name, text in template.headers.items()}
        asked: set[str] = set()
        while url:
            if url in asked or len(asked) >= self._configuration.max_pages:
                raise Unreadable("its pages go in a circle" if url in asked else "it has too many pages")
            status, page = self._ask(url, headers)
            if status in self._configuration.absent_status and not asked:
                return
            _check_ok(status)
            asked.add(url)
            yield page
            url = self._next(url, page)

    def _next(self, url: str, page: object) -> str:
        """The next page's address; empty after the last."""
        next_page = self._configuration.next_page
        value = pointer(page, next_page.pointer) if next_page else None
        if next_page is None or value in (None, "", False):
            return ""
        if next_page.parameter is not None:
            return _with_parameter(url, next_page.parameter, _word(value))
        if not isinstance(value, str):
            raise Unreadable("its next page is not an address")
        following = urljoin(url, value)
        if urlsplit(following)[:2] != urlsplit(url)[:2]:
            raise Unreadable("its next page is at another host")
        return following

    def _items(self, page: object) -> list[Mapping[str, Any]]:
        found = pointer(page, self._configuration.matches)
        items = [found] if isinstance(found, Mapping) else found
        if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
            raise Unreadable(f"there is no list at {self._configuration.matches or 'the top'} of its answer")
        return items

    def _record(self, item: Mapping[str, Any], question: Question) -> Record:
        reference = pointer(item, self._configuration.reference)
        return Record(
            reference=None if reference is None else _word(reference),
            content=self._content(item, question),
            state=self._state(item) or "in_progress",
            data=self._kept(item),
        )

    def _content(self, item: Mapping[str, Any], question: Question) -> Literal["same", "other"]:
        """The same only if every configured value is, and at least one is there to be compared."""
        compared = 0
        for argument, path in self._configuration.content.items():
            ours = question.args_hash if argument == "args_hash" else pointer(question.args, argument)
            if canonical_bytes(ours) != canonical_bytes(pointer(item, path)):
                return "other"
            compared += ours is not None
        return "same" if compared else "other"

    def _state(self, item: Mapping[str, Any]) -> RecordState | None:
        return self._configuration.state.always or self._configuration.state.words.get(self._status(item))

    def _status(self, item: Mapping[str, Any]) -> str:
        return _word(pointer(item, self._configuration.state.pointer or ""))[:LONGEST_WORD]

    def _kept(self, item: Mapping[str, Any]) -> Mapping[str, object]:
        """The record as evidence: whole where it is small, else the parts that were looked at."""
        if len(canonical_bytes(item)) <= MOST_KEPT_BYTES:
            return item
        configuration = self._configuration
        paths = [configuration.reference, configuration.state.pointer or "", *configuration.content.values()]
        return {path: _word(pointer(item, path))[:LONGEST_WORD] for path in paths if path}

    def _canary_seen(self) -> bool | None:
        """Does this key see what is known to exist? None where no canary is configured."""
        canary = self._configuration.canary
        if canary is None:
            return None
        status, page = self._ask(canary.request.url, canary.request.headers)
        if status == 429 or status >= 500:
            raise Unreadable(f"it answered {status} for the canary")
        return status == 200 and _is_the_canary(page, canary)

    def _ask(self, url: str, headers: Mapping[str, str]) -> tuple[int, object]:
        """One page's status and document (None where it is not a 200)."""
        auth = self._configuration.auth
        secret = {auth.header: f"{auth.prefix}{self._secret}"} if auth else {}
        pace(urlsplit(url).netloc, self._configuration.rate_per_s)
        answer = http.request("GET", url, headers={"Accept": "application/json", **headers, **secret})
        if answer.status != 200:
            return answer.status, None
        if answer.cut:
            raise Unreadable("its answer is longer than 64 kB; ask for smaller pages")
        return 200, _document(answer.body)


def _check_ok(status: int) -> None:
    if status != 200:
        raise Unreadable(f"it answered {status}")


def _document(raw: bytes) -> object:
    """The answer's JSON. Unlike ours, a provider's answer may be a list, so it is read inside an object."""
    try:
        whole = read_json(b'{"answer":' + raw + b"}")
    except MalformedJson as error:
        raise Unreadable(f"its answer cannot be read: {error}") from None
    if set(whole) != {"answer"}:
        raise Unreadable("its answer cannot be read: it is not one document")
    return whole["answer"]


def _is_the_canary(page: object, canary: Canary) -> bool:
    return canonical_bytes(pointer(page, canary.pointer)) == canonical_bytes(canary.value)


def _with_parameter(url: str, name: str, value: str) -> str:
    parts = urlsplit(url)
    others = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] != name]
    return parts._replace(query=urlencode([*others, (name, value)])).geturl()


def _word(value: object) -> str:
    """A value as one word to compare or show: a text itself, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
