"""Set up the demo's tenants with the product's own commands. Done again it changes nothing."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from typing import Any

from django.core.management import call_command

from dashboard.management.demo.cast import (
    MAIL_DOMAIN,
    OWNER,
    PEOPLE,
    TENANTS,
    DemoTenant,
    Person,
    provider_config,
)
from dashboard.management.demo.desk import SHOP
from dashboard.management.demo.state import Secrets
from dashboard.management.demo.stories import FERNHILL
from ledger.management.commands.create_tenant import create
from ledger.models import ApiKey, Destination, PolicySnapshot, Provider, Tenant, User
from ledger.rules.keys import parse_api_key
from ledger.transactions import database_clock, durable

KEY_DAYS = 365
LEFT_AT_LEAST = timedelta(days=1)
SCOPES = ("tool:refund.*", "tool:mail.*", "tool:ticket.*", "tool:deploy.*")


def seed(known: Secrets, provider_url: str) -> bool:
    """Make sure that everybody and everything is there. Returns whether an agent got a new key."""
    for tenant in TENANTS:
        _ensure_tenant(tenant)
    for person in PEOPLE:
        _ensure_person(person, known.password_of(person.username))
    for tenant in TENANTS:
        _ensure_providers(tenant, provider_url)
        _ensure_policy(tenant)
    new_keys = [_ensure_key(tenant, known) for tenant in TENANTS]
    return any(new_keys)


def ensure_shop(known: Secrets, url: str) -> str:
    """The shop hears of every result at Fernhill, where it listens now; the secret it verifies with."""
    there = Destination.objects.filter(tenant__slug=FERNHILL, name=SHOP)
    if not there.exists():
        known.shop_secret = _run("add_destination", SHOP, url, tenant=FERNHILL)["secret"]
        known.save()
    elif not known.shop_secret:
        known.shop_secret = _run("destination", "rotate", SHOP, tenant=FERNHILL)["secret"]
        known.save()
    there.exclude(url=url).update(url=url)
    return known.shop_secret


def _ensure_tenant(tenant: DemoTenant) -> None:
    if not Tenant.objects.filter(slug=tenant.slug).exists():
        durable(lambda: create(slug=tenant.slug, name=tenant.name))


def _ensure_person(person: Person, password: str) -> None:
    _restore_password(person, password)
    for tenant, role in person.roles.items():
        _run(
            "create_operator",
            person.username,
            tenant=tenant,
            role=role.value,
            email=person.email,
            password=password,
        )


def _restore_password(person: Person, password: str) -> None:
    """Where demo.json was lost: a new password, but only for somebody the demo itself made."""
    user = User.objects.filter(username=person.username, email__endswith=f"@{MAIL_DOMAIN}").first()
    if user is not None and not user.check_password(password):
        user.set_password(password)
        user.save(update_fields=["password"])


def _ensure_providers(tenant: DemoTenant, url: str) -> None:
    """The address may differ from the last start's: then the rows follow it."""
    row = Tenant.objects.get(slug=tenant.slug)
    for name, (resource, compared) in tenant.providers.items():
        config = provider_config(url, resource, compared)
        Provider.objects.update_or_create(
            tenant=row, name=name, defaults={"adapter": "http", "config": config}
        )


def _ensure_policy(tenant: DemoTenant) -> None:
    """Published once: whoever tries out another policy keeps it."""
    if not PolicySnapshot.objects.filter(tenant__slug=tenant.slug).exists():
        _run("publish_policy", str(tenant.policy), tenant=tenant.slug, by=OWNER)


def _ensure_key(tenant: DemoTenant, known: Secrets) -> bool:
    if _is_live(known.api_keys.get(tenant.slug)):
        return False
    made = _run(
        "create_agent_key",
        tenant=tenant.slug,
        agent=tenant.agent,
        owner=OWNER,
        scope=list(SCOPES),
        days=KEY_DAYS,
    )
    known.api_keys[tenant.slug] = made["key"]
    known.save()
    return True


def _is_live(text: str | None) -> bool:
    parts = parse_api_key(text)
    if parts is None:
        return False
    lasting = ApiKey.objects.filter(revoked_at=None, expires_at__gt=database_clock() + LEFT_AT_LEAST)
    return lasting.filter(key_id=parts.key_id).exists()


def _run(command: str, *arguments: str, **options: Any) -> dict[str, Any]:
    """Run one of the product's commands and read its answer."""
    out = StringIO()
    call_command(command, *arguments, **options, json=True, stdout=out)
    answer: dict[str, Any] = json.loads(out.getvalue())
    return answer
