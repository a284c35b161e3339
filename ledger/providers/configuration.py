"""The `http` adapter's configuration: JSON in, a checked value out. docs/adapters.md explains every field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ledger.providers.base import AdapterMisconfigured
from ledger.providers.fields import (
    HEADER_NAME,
    MOST_PAGES,
    USUAL_PAGES,
    USUAL_RATE_PER_S,
    Auth,
    Fields,
    compared_content,
    pointer_at,
    secret_name,
)
from ledger.providers.parts import RequestTemplate, StateWords, reading_request, state_words
from ledger.providers.send_configuration import SendTemplate, send_template


@dataclass(frozen=True)
class NextPage:
    """Where the next page's address stands; with `parameter`, where its value for the query stands. Without
    a pointer it stands in the Link header."""

    pointer: str | None
    parameter: str | None


@dataclass(frozen=True)
class Canary:
    """A request for something known to exist, and the value its answer must have there."""

    request: RequestTemplate
    pointer: str
    value: object


@dataclass(frozen=True)
class Configuration:
    """Everything the `http` adapter knows of a provider. `send` None: the ledger cannot send through it."""

    request: RequestTemplate
    matches: str
    reference: str
    state: StateWords
    content: Mapping[str, str]
    match_where: Mapping[str, str]
    match_inside: Mapping[str, str]
    auth: Auth | None
    next_page: NextPage | None
    canary: Canary | None
    rate_per_s: float
    max_pages: int
    absent_status: frozenset[int]
    send: SendTemplate | None

    def can_send(self, _tool: str) -> bool:
        return self.send is not None


def parse_configuration(config: object) -> Configuration:
    """Check the whole configuration. Raises AdapterMisconfigured at the first thing that cannot be used."""
    fields = Fields("", config)
    auth, next_page, canary = fields.inner("auth"), fields.inner("next_page"), fields.inner("canary")
    request, matches = reading_request(fields.needed("request")), fields.pointer("matches", whole=True)
    reference, state = fields.pointer("reference"), state_words(fields.needed("state"))
    content, send = compared_content(fields.needed("content")), fields.inner("send")
    parsed = Configuration(
        request=request,
        matches=matches,
        reference=reference,
        state=state,
        content=content,
        match_where=_matched(fields.inner("match_where")),
        match_inside=_matched(fields.inner("match_inside")),
        auth=_auth(auth) if auth else None,
        next_page=_next_page(next_page) if next_page else None,
        canary=_canary(canary) if canary else None,
        rate_per_s=fields.number("rate_per_s", USUAL_RATE_PER_S, least=0.01, most=1000),
        max_pages=int(fields.number("max_pages", USUAL_PAGES, least=1, most=MOST_PAGES)),
        absent_status=_absent_status(fields),
        send=send_template(send, reference=reference, state=state, content=content) if send else None,
    )
    fields.check_nothing_left()
    if parsed.absent_status and parsed.canary is None:
        raise AdapterMisconfigured(
            "/absent_status",
            "a 404 may also mean that this key may not look; add a canary, so that the two can be told apart",
        )
    return parsed


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


def _matched(fields: Fields | None) -> Mapping[str, str]:
    if fields is None:
        return {}
    for name in fields.values:
        pointer_at(fields.at(name), name)
    return {name: fields.template(name) for name in list(fields.values)}


def _next_page(fields: Fields) -> NextPage:
    if "header" in fields.values:
        return _next_page_in_header(fields)
    parameter = fields.text("parameter") if "parameter" in fields.values else None
    next_page = NextPage(fields.pointer("pointer"), parameter)
    fields.check_nothing_left()
    return next_page


def _next_page_in_header(fields: Fields) -> NextPage:
    if fields.take("header") != "Link":
        raise AdapterMisconfigured(fields.at("header"), 'only "Link" is known')
    fields.check_nothing_left()
    return NextPage(pointer=None, parameter=None)


def _canary(fields: Fields) -> Canary:
    request = reading_request(fields.needed("request"))
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
