"""The parts that a provider's configuration is made of: requests, and what status words mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from ledger.providers.base import AdapterMisconfigured
from ledger.providers.fields import HEADER_NAME, Fields, RecordState

STATES: tuple[RecordState, ...] = ("done", "in_progress", "failed", "reversed")
SECRET_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key", "api-key"})


@dataclass(frozen=True)
class RequestTemplate:
    """An address and headers, with placeholders in its path, its query and its headers' values."""

    url: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class StateWords:
    """Where a record's status stands and what each word means; without a pointer every record is `always`."""

    pointer: str | None
    words: Mapping[str, RecordState]
    always: RecordState | None


def reading_request(fields: Fields) -> RequestTemplate:
    """A request that changes nothing."""
    if fields.take("method", "GET") != "GET":
        raise AdapterMisconfigured(fields.at("method"), "a look-up only reads: GET")
    request = request_template(fields)
    fields.check_nothing_left()
    return request


def request_template(fields: Fields) -> RequestTemplate:
    """`url` and `headers`; whatever else stands there is left to the caller."""
    url = fields.template("url")
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc or parts.fragment:
        raise AdapterMisconfigured(fields.at("url"), "an address like https://host/path?query is needed here")
    if "{" in parts.netloc or "@" in parts.netloc:
        raise AdapterMisconfigured(fields.at("url"), "host and port are fixed, without user and placeholders")
    return RequestTemplate(url, _headers(fields.inner("headers")))


def _headers(fields: Fields | None) -> Mapping[str, str]:
    if fields is None:
        return {}
    headers = {name: fields.template(name) for name in list(fields.values)}
    for name in headers:
        if not HEADER_NAME.fullmatch(name):
            raise AdapterMisconfigured(fields.at(name), "not a header's name")
        if name.lower() in SECRET_HEADERS:
            raise AdapterMisconfigured(fields.at(name), "secrets are not stored here: name one under /auth")
    return headers


def state_words(fields: Fields) -> StateWords:
    """What each status word of a record means."""
    if "always" in fields.values:
        always = fields.take("always")
        fields.check_nothing_left()
        if always not in STATES:
            raise AdapterMisconfigured(fields.at("always"), f"one of {', '.join(STATES)} is needed here")
        return StateWords(None, {}, always)
    pointer, words = fields.pointer("pointer"), _words(fields)
    fields.check_nothing_left()
    if "done" not in words.values():
        raise AdapterMisconfigured(fields.at("done"), "at least one word must mean that it happened")
    return StateWords(pointer, words, None)


def _words(fields: Fields) -> Mapping[str, RecordState]:
    words: dict[str, RecordState] = {}
    for state in STATES:
        listed = fields.take(state, [])
        if not isinstance(listed, list) or not all(isinstance(word, str) for word in listed):
            raise AdapterMisconfigured(fields.at(state), "a list of status words is needed here")
        for word in listed:
            if words.setdefault(word, state) != state:
                raise AdapterMisconfigured(fields.at(state), f"{word!r} already means {words[word]}")
    return words
