"""The `http` adapter's configuration: JSON in, a checked value out. docs/adapters.md explains every field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from ledger.providers.base import AdapterMisconfigured
from ledger.providers.fields import (
    HEADER_NAME,
    MOST_PAGES,
    USUAL_PAGES,
    USUAL_RATE_PER_S,
    Auth,
    Fields,
    RecordState,
    compared_content,
    pointer_at,
    secret_name,
)

STATES: tuple[RecordState, ...] = ("done", "in_progress", "failed", "reversed")
SECRET_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key", "api-key"})


@dataclass(frozen=True)
class RequestTemplate:
    """A GET, with placeholders in its path, its query and its headers' values."""

    url: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class StateWords:
    """Where a record's status stands and what each word means; without a pointer every record is `always`."""

    pointer: str | None
    words: Mapping[str, RecordState]
    always: RecordState | None


@dataclass(frozen=True)
class NextPage:
    """Where the next page's address stands; with `parameter`, where its value for the query stands."""

    pointer: str
    parameter: str | None


@dataclass(frozen=True)
class Canary:
    """A request for something known to exist, and the value its answer must have there."""

    request: RequestTemplate
    pointer: str
    value: object


@dataclass(frozen=True)
class Configuration:
    """Everything the `http` adapter knows of a provider."""

    request: RequestTemplate
    matches: str
    reference: str
    state: StateWords
    content: Mapping[str, str]
    match_where: Mapping[str, str]
    auth: Auth | None
    next_page: NextPage | None
    canary: Canary | None
    rate_per_s: float
    max_pages: int
    absent_status: frozenset[int]


def parse_configuration(config: object) -> Configuration:
    """Check the whole configuration. Raises AdapterMisconfigured at the first thing that cannot be used."""
    fields = Fields("", config)
    auth, next_page, canary = fields.inner("auth"), fields.inner("next_page"), fields.inner("canary")
    parsed = Configuration(
        request=_request(fields.needed("request")),
        matches=fields.pointer("matches", whole=True),
        reference=fields.pointer("reference"),
        state=_state(fields.needed("state")),
        content=compared_content(fields.needed("content")),
        match_where=_match_where(fields.inner("match_where")),
        auth=_auth(auth) if auth else None,
        next_page=_next_page(next_page) if next_page else None,
        canary=_canary(canary) if canary else None,
        rate_per_s=fields.number("rate_per_s", USUAL_RATE_PER_S, least=0.01, most=1000),
        max_pages=int(fields.number("max_pages", USUAL_PAGES, least=1, most=MOST_PAGES)),
        absent_status=_absent_status(fields),
    )
    fields.check_nothing_left()
    if parsed.absent_status and parsed.canary is None:
        raise AdapterMisconfigured(
            "/absent_status",
            "a 404 may also mean that this key may not look; add a canary, so that the two can be told apart",
        )
    return parsed


def _request(fields: Fields) -> RequestTemplate:
    if fields.take("method", "GET") != "GET":
        raise AdapterMisconfigured(fields.at("method"), "a look-up only reads: GET")
    url = fields.template("url")
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc or parts.fragment:
        raise AdapterMisconfigured(fields.at("url"), "an address like https://host/path?query is needed here")
    if "{" in parts.netloc or "@" in parts.netloc:
        raise AdapterMisconfigured(fields.at("url"), "host and port are fixed, without user and placeholders")
    headers = _headers(fields.inner("headers"))
    fields.check_nothing_left()
    return RequestTemplate(url, headers)


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


def _auth(fields: Fields) -> Auth:
    auth = Auth(
        env=secret_name(fields),
        header=fields.text("header", "Authorization"),
        prefix=fields.text("prefix", "Bearer "),
    )
    fields.check_nothing_left()
    if not HEADER_NAME.fullmatch(auth.header):
        raise AdapterMisconfigured(fields.at("header"), "not a header's name")
    return auth


def _state(fields: Fields) -> StateWords:
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


def _match_where(fields: Fields | None) -> Mapping[str, str]:
    if fields is None:
        return {}
    for name in fields.values:
        pointer_at(fields.at(name), name)
    return {name: fields.template(name) for name in list(fields.values)}


def _next_page(fields: Fields) -> NextPage:
    parameter = fields.text("parameter") if "parameter" in fields.values else None
    next_page = NextPage(fields.pointer("pointer"), parameter)
    fields.check_nothing_left()
    return next_page


def _canary(fields: Fields) -> Canary:
    request = _request(fields.needed("request"))
    if any("{" in text for text in (request.url, *request.headers.values())):
        raise AdapterMisconfigured(fields.at("request"), "a canary is always the same: no placeholders")
    canary = Canary(request, fields.pointer("pointer"), fields.take("value"))
    fields.check_nothing_left()
    if not isinstance(canary.value, str | int | float):
        raise AdapterMisconfigured(fields.at("value"), "the text or number that must stand there is needed")
    return canary


def _absent_status(fields: Fields) -> frozenset[int]:
    listed = fields.take("absent_status", [])
    if not isinstance(listed, list) or not all(status in (404, 410) for status in listed):
        raise AdapterMisconfigured(fields.at("absent_status"), "only 404 and 410 can mean absent")
    return frozenset(listed)
