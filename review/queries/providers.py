"""Providers of a tenant: how each is configured, how it answers, and what could be sent through it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from ledger.models import PolicySnapshot, Provider, User
from ledger.policies import current_snapshot, policy_of
from ledger.reconciliation import AdapterMisconfigured, check_configuration
from ledger.rules.policy import Rule
from ledger.transactions import database_clock
from review.queries.charge import Charge, in_charge
from review.queries.destinations import Health
from review.queries.marked import Segment, marked_text

HIDDEN = "(hidden)"
_MAY_BE_SECRET = re.compile(r"([?&][^=&]*(?:key|token|secret|pass|sig|auth)[^=&]*=)[^&{]+", re.IGNORECASE)


@dataclass(frozen=True)
class ToolOfProvider:
    """One rule in force that names the provider. `why_not`: why the ledger cannot send it through this
    provider; empty where it can."""

    tool: str
    effect: str
    executor: str
    why_not: str


@dataclass(frozen=True)
class ProviderRow:
    """One provider. `config` is its configuration as JSON; secrets are named in it and never stored, and what
    could hold one all the same is hidden."""

    name: str
    adapter: str
    health: Health
    health_words: str
    misconfigured: str
    failures: int
    unavailable_since: datetime | None
    probe_at: datetime | None
    last_answer_at: datetime | None
    refused_credential: str
    credential_refused_since: datetime | None
    tools: tuple[ToolOfProvider, ...]
    config: tuple[Segment, ...]


@dataclass(frozen=True)
class ProvidersPage:
    """The providers of one tenant by name, and those that rules name although there are none."""

    charge: Charge
    rows: tuple[ProviderRow, ...]
    missing: tuple[str, ...]
    as_of: datetime


def providers_page(user: User, slug: str = "") -> ProvidersPage:
    """Raises `NotVisible` and `NotPermitted`. Queries do not grow with providers."""
    charge = in_charge(user, slug)
    rules = _rules(current_snapshot(charge.tenant.pk))
    providers = list(Provider.objects.filter(tenant=charge.tenant).order_by("name"))
    named = {rule.provider for rule in rules.values() if rule.provider}
    return ProvidersPage(
        charge=charge,
        rows=tuple(_row(provider, rules) for provider in providers),
        missing=tuple(sorted(named - {provider.name for provider in providers})),
        as_of=database_clock(),
    )


def _rules(snapshot: PolicySnapshot | None) -> Mapping[str, Rule]:
    """Name or glob → rule in force; `default` for the one of every other tool."""
    if snapshot is None:
        return {}
    policy = policy_of(snapshot)
    return {**policy.tools, **({"default": policy.default} if policy.default else {})}


def _row(provider: Provider, rules: Mapping[str, Rule]) -> ProviderRow:
    misconfigured = _misconfigured(provider)
    health, words = _health(provider, misconfigured)
    return ProviderRow(
        name=provider.name,
        adapter=provider.adapter,
        health=health,
        health_words=words,
        misconfigured=misconfigured,
        failures=provider.failures,
        unavailable_since=provider.unavailable_since,
        probe_at=provider.probe_at,
        last_answer_at=provider.last_answer_at,
        refused_credential=provider.refused_credential,
        credential_refused_since=provider.credential_refused_since,
        tools=tuple(
            ToolOfProvider(tool, rule.effect, rule.executor, misconfigured or _why_not(provider, tool))
            for tool, rule in sorted(rules.items())
            if rule.provider == provider.name
        ),
        config=marked_text(json.dumps(without_secrets(provider.config), indent=2, ensure_ascii=False)),
    )


def _misconfigured(provider: Provider) -> str:
    try:
        check_configuration(provider.adapter, provider.config)
    except AdapterMisconfigured as error:
        return f"{error.path or 'its configuration'}: {error.problem}"
    return ""


def _why_not(provider: Provider, tool: str) -> str:
    glob = "*" if tool == "default" else tool
    sends = check_configuration(provider.adapter, provider.config).can_send(glob)
    return "" if sends else "its configuration does not say how to send"


def _health(provider: Provider, misconfigured: str) -> tuple[Health, str]:
    if misconfigured:
        return Health.FAILING, "cannot be used as it is configured"
    if provider.refused_credential:
        return Health.FAILING, "does not take its credential"
    if provider.unavailable_since is not None:
        return Health.RESTING, "is away: one probe at a time until it answers"
    if provider.failures:
        return Health.FAILING, "did not answer readably the last time"
    return Health.WELL, "" if provider.last_answer_at else "was not asked yet"


def without_secrets(value: Any, *, in_headers: bool = False) -> Any:
    """A configuration without what could hold a secret although it should not: values of headers, users and
    passwords in addresses, and parameters of such names."""
    if isinstance(value, Mapping):
        return {
            name: without_secrets(each, in_headers=in_headers or name == "headers")
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [without_secrets(each, in_headers=in_headers) for each in value]
    if not isinstance(value, str):
        return value
    if in_headers:
        return value if value.startswith("{") and value.endswith("}") else HIDDEN
    return _address_without_secrets(value) if "://" in value else value


def _address_without_secrets(address: str) -> str:
    try:
        parts = urlsplit(address)
    except ValueError:
        return HIDDEN
    host = parts.netloc.rpartition("@")[2]
    netloc = f"{HIDDEN}@{host}" if "@" in parts.netloc else host
    query = _MAY_BE_SECRET.sub(rf"\1{HIDDEN}", f"?{parts.query}")[1:]
    return urlunsplit(parts._replace(netloc=netloc, query=query))
