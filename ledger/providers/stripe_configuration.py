"""The `stripe` adapter's configuration: JSON in, a checked value out. docs/adapters.md has every field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from ledger.providers.base import AdapterMisconfigured
from ledger.providers.fields import (
    MOST_PAGES,
    USUAL_RATE_PER_S,
    Auth,
    Fields,
    compared_content,
    secret_name,
)
from ledger.providers.templates import problem_with_body
from ledger.rules.pointers import glob_matches

Kind = Literal["charges", "refunds", "payment_intents"]
KINDS: tuple[Kind, ...] = ("charges", "refunds", "payment_intents")

ALL_ARGUMENTS = "{args}"
USUAL_API = "https://api.stripe.com"
USUAL_METADATA = "correlation_id"
LARGEST_PAGE = 100

OBJECT_ID = re.compile(r"[A-Za-z0-9_]{1,255}", re.ASCII)
ACCOUNT_ID = re.compile(r"acct_[A-Za-z0-9]{1,60}", re.ASCII)
METADATA_KEY = re.compile(r"[A-Za-z0-9_.-]{1,40}", re.ASCII)


@dataclass(frozen=True)
class Sought:
    """What one tool makes at Stripe, and what of its arguments must be found there again. `send`: a template
    of its fields; None: the ledger cannot make it."""

    kind: Kind
    content: Mapping[str, str]
    send: object


@dataclass(frozen=True)
class Canary:
    """An object known to exist in the account that is meant."""

    kind: Kind
    object_id: str


@dataclass(frozen=True)
class StripeConfiguration:
    """Everything the `stripe` adapter knows. `margin_s` None: a listing has no beginning in time;
    `page_size` None: as the kind usually fits into one answer."""

    auth: Auth
    objects: Mapping[str, Sought]
    canary: Canary
    api: str
    account: str
    metadata: str
    authorised: Literal["done", "in_progress"]
    margin_s: float | None
    page_size: int | None
    max_pages: int
    rate_per_s: float

    def can_send(self, tool: str) -> bool:
        """Is there a template for this tool, or for any of this glob?"""
        names = (name for name, sought in self.objects.items() if sought.send is not None)
        return any(glob_matches(tool, name) for name in names)


def parse_stripe_configuration(config: object) -> StripeConfiguration:
    """Check the whole configuration. Raises AdapterMisconfigured at the first thing that cannot be used."""
    fields = Fields("", config)
    parsed = StripeConfiguration(
        auth=_auth(fields.needed("auth")),
        objects=_objects(fields.needed("objects")),
        canary=_canary(fields.needed("canary")),
        api=_api(fields),
        account=_account(fields) if "account" in fields.values else "",
        metadata=fields.matching("metadata", METADATA_KEY, "a metadata key", usual=USUAL_METADATA),
        authorised=_authorised(fields),
        margin_s=fields.margin_s(),
        page_size=_page_size(fields),
        max_pages=int(fields.number("max_pages", MOST_PAGES, least=1, most=MOST_PAGES)),
        rate_per_s=fields.number("rate_per_s", USUAL_RATE_PER_S, least=0.01, most=1000),
    )
    fields.check_nothing_left()
    return parsed


def _auth(fields: Fields) -> Auth:
    auth = Auth(secret_name(fields))
    fields.check_nothing_left()
    return auth


def _objects(fields: Fields) -> Mapping[str, Sought]:
    tools = list(fields.values)
    if not tools:
        raise AdapterMisconfigured(fields.path, "name at least one tool and what it makes at Stripe")
    return {tool: _sought(fields.needed(tool)) for tool in tools}


def _sought(fields: Fields) -> Sought:
    sought = Sought(fields.one_of("kind", KINDS), compared_content(fields.needed("content")), _send(fields))
    fields.check_nothing_left()
    return sought


def _send(fields: Fields) -> object:
    template = fields.take("send")
    problem = problem_with_body(template)
    if template is not None and template != ALL_ARGUMENTS and not isinstance(template, Mapping):
        problem = f'the fields that are posted are needed here, or "{ALL_ARGUMENTS}" for all arguments'
    if problem:
        raise AdapterMisconfigured(fields.at("send"), problem)
    return template


def _canary(fields: Fields) -> Canary:
    what = "the id of something that exists in that account"
    canary = Canary(fields.one_of("kind", KINDS), fields.matching("id", OBJECT_ID, what))
    fields.check_nothing_left()
    return canary


def _api(fields: Fields) -> str:
    api = fields.text("api", USUAL_API)
    parts = urlsplit(api)
    if parts.scheme not in {"http", "https"} or not parts.netloc or "@" in parts.netloc or any(parts[2:]):
        raise AdapterMisconfigured(fields.at("api"), f"an address like {USUAL_API} is needed here")
    return api


def _account(fields: Fields) -> str:
    return fields.matching("account", ACCOUNT_ID, "a connected account like acct_1032D82eZvKYlo2C")


def _authorised(fields: Fields) -> Literal["done", "in_progress"]:
    value = fields.take("authorised", "in_progress")
    if value not in ("done", "in_progress"):
        raise AdapterMisconfigured(fields.at("authorised"), "done or in_progress is needed here")
    return "done" if value == "done" else "in_progress"


def _page_size(fields: Fields) -> int | None:
    if "page_size" not in fields.values:
        return None
    return int(fields.number("page_size", 1, least=1, most=LARGEST_PAGE))
