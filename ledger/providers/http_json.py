"""The `http` adapter: asks any provider with a JSON API what became of a request, as its configuration says.

The one thing it must never do is take "I could not see" for "it is not there". So *absent* needs every page
read to the end and, where a canary is configured, something known to exist seen by the same key; everything
half-read, unknown or contradictory is *unavailable*. A status word nobody configured still means that the
thing exists: it counts as in progress, until somebody configures what it means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from ledger.providers.base import Question
from ledger.providers.configuration import Canary, Configuration, NextPage
from ledger.providers.fields import RecordState
from ledger.providers.reading import (
    HASH_ONLY,
    LONGEST_WORD,
    MOST_KEPT_BYTES,
    NO_ANSWER,
    Endless,
    Page,
    Reader,
    Unreadable,
    absent,
    as_word,
    comparable,
    content_of,
    further,
    name_of,
    next_in,
    no_answer,
    state_of,
    status_of,
    unknown_words,
)
from ledger.providers.templates import Unaskable, filled, filled_and_encoded
from ledger.rules.canonical import canonical_bytes
from ledger.rules.looked_up import LookedUp, LookedUpKind, Record
from ledger.rules.pointers import pointer


class HttpAdapter:
    """One provider's JSON API, as its configuration describes it."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._reader = Reader(configuration.auth, {"Accept": "application/json"}, configuration.rate_per_s)

    def look_up(self, question: Question) -> LookedUp:
        """Ask for what carries this operation's marks, page by page, and say what was found."""
        try:
            records, detail = self._records(question)
            if records:
                return LookedUp(LookedUpKind.FOUND, records, detail=detail)
            return absent(seen=self._canary_seen(), credential=self._reader.credential)
        except Unaskable as why:
            return LookedUp(LookedUpKind.NO_LOOKUP, detail=str(why))
        except NO_ANSWER as why:
            return no_answer(why)

    def _records(self, question: Question) -> tuple[tuple[Record, ...], str]:
        """Every record that is this operation's, and which status words nobody knows."""
        configuration = self._configuration
        if not comparable(question, configuration.content):
            raise Unaskable(HASH_ONLY)
        wanted = {path: filled(text, question) for path, text in configuration.match_where.items()}
        contained = {path: filled(text, question) for path, text in configuration.match_inside.items()}
        found = [
            item
            for page in self._pages(question)
            for item in self._items(page)
            if all(as_word(pointer(item, path)) == text for path, text in wanted.items())
            and all(text in as_word(pointer(item, path)) for path, text in contained.items())
        ]
        unknown = unknown_words({self._status(item) for item in found if self._state(item) is None})
        return tuple(self._record(item, question) for item in found), unknown

    def _pages(self, question: Question) -> Iterator[object]:
        """Every page to the last; Endless when the last is not reached."""
        template = self._configuration.request
        url = filled_and_encoded(template.url, question)
        headers = {name: filled_and_encoded(text, question) for name, text in template.headers.items()}
        asked: set[str] = set()
        while url:
            if url in asked or len(asked) >= self._configuration.max_pages:
                raise Endless("its pages go in a circle" if url in asked else "it has too many pages")
            with further(len(asked)):
                page = self._reader.get(url, headers)
            if page.status in self._configuration.absent_status and not asked:
                return
            self._reader.check_ok(page.status)
            asked.add(url)
            yield page.document
            url = self._next(url, page)

    def _next(self, url: str, page: Page) -> str:
        """The next page's address; empty after the last."""
        next_page = self._configuration.next_page
        value = _value_of_next(page, next_page) if next_page else None
        if next_page is None or value in (None, "", False):
            return ""
        if next_page.parameter is not None:
            return _with_parameter(url, next_page.parameter, as_word(value))
        if not isinstance(value, str):
            raise Unreadable("its next page is not an address")
        following = urljoin(url, value)
        if urlsplit(following)[:2] != urlsplit(url)[:2]:
            raise Unreadable("its next page is at another host")
        return following

    def _items(self, page: object) -> list[Mapping[str, Any]]:
        """A page's records. An object is a list of one, except where there are pages: what is no list of
        records there says something else, such as that it failed."""
        configuration = self._configuration
        found = pointer(page, configuration.matches)
        alone = isinstance(found, Mapping) and configuration.next_page is None
        items = [found] if alone else found
        if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
            raise Unreadable(f"there is no list at {configuration.matches or 'the top'} of its answer")
        if any(pointer(item, configuration.reference) is None for item in items):
            raise Unreadable(f"a record has nothing at {configuration.reference}")
        return items

    def _record(self, item: Mapping[str, Any], question: Question) -> Record:
        return Record(
            reference=name_of(pointer(item, self._configuration.reference)),
            content=content_of(item, question, self._configuration.content),
            state=self._state(item) or "in_progress",
            data=self._kept(item),
        )

    def _state(self, item: Mapping[str, Any]) -> RecordState | None:
        return state_of(item, self._configuration.state)

    def _status(self, item: Mapping[str, Any]) -> str:
        return status_of(item, self._configuration.state)

    def _kept(self, item: Mapping[str, Any]) -> Mapping[str, object]:
        """The record as evidence: whole where it is small, else the parts that were looked at."""
        if len(canonical_bytes(item)) <= MOST_KEPT_BYTES:
            return item
        configuration = self._configuration
        paths = [configuration.reference, configuration.state.pointer or "", *configuration.content.values()]
        return {path: as_word(pointer(item, path))[:LONGEST_WORD] for path in paths if path}

    def _canary_seen(self) -> bool | None:
        """Does this key see what is known to exist? None where no canary is configured."""
        canary = self._configuration.canary
        if canary is None:
            return None
        page = self._reader.get(canary.request.url, canary.request.headers)
        if page.status == 429 or page.status >= 500:
            raise Unreadable(f"it answered {page.status} for the canary")
        return page.status == 200 and _is_the_canary(page.document, canary)


def _value_of_next(page: Page, next_page: NextPage) -> object:
    return next_in(page.link) if next_page.pointer is None else pointer(page.document, next_page.pointer)


def _is_the_canary(page: object, canary: Canary) -> bool:
    return canonical_bytes(pointer(page, canary.pointer)) == canonical_bytes(canary.value)


def _with_parameter(url: str, name: str, value: str) -> str:
    parts = urlsplit(url)
    others = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] != name]
    return parts._replace(query=urlencode([*others, (name, value)])).geturl()
