"""Who and what the demo's two tenants consist of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboard.management.demo.books import DONE_WORDS
from dashboard.management.demo.stories import BRIGHTWATER, FERNHILL
from review.roles import Role

POLICIES = Path(__file__).parent / "policies"
MAIL_DOMAIN = "demo.example"
"""How the demo knows its own people again: only their passwords may it set anew."""


@dataclass(frozen=True)
class DemoTenant:
    """One tenant, its agent, and which providers its rules name (name → resource, compared arguments)."""

    slug: str
    name: str
    agent: str
    providers: Mapping[str, tuple[str, tuple[str, ...]]]

    @property
    def policy(self) -> Path:
        return POLICIES / f"{self.slug}.json"


@dataclass(frozen=True)
class Person:
    """One person; `may` says in a few words what the roles let them do."""

    username: str
    roles: Mapping[str, Role]
    may: str

    @property
    def email(self) -> str:
        return f"{self.username}@{MAIL_DOMAIN}"


MAIL = ("messages", ("to", "subject", "body"))

TENANTS = (
    DemoTenant(
        slug=FERNHILL,
        name="Fernhill Outfitters",
        agent="returns-assistant",
        providers={
            "bank": ("refunds", ("order", "customer", "amount", "currency", "method")),
            "mail": MAIL,
            "releases": ("deployments", ("service", "version", "environment")),
        },
    ),
    DemoTenant(
        slug=BRIGHTWATER,
        name="Brightwater Clinic",
        agent="front-desk-assistant",
        providers={"mail": MAIL},
    ),
)

OWNER = "dana"
"""Owns the agents and publishes the policies, and so can approve nothing of theirs."""

PEOPLE = (
    Person("ada", {FERNHILL: Role.APPROVER}, "approve sends, and decide everything else"),
    Person("bruno", {FERNHILL: Role.APPROVER}, "the same: a deployment needs both"),
    Person(
        "chen",
        {FERNHILL: Role.OPERATOR, BRIGHTWATER: Role.VIEWER},
        "confirm, reject, re-check; look on at Brightwater",
    ),
    Person(
        OWNER,
        {FERNHILL: Role.ADMIN, BRIGHTWATER: Role.ADMIN},
        "administer; owns the agents, so approves none of their sends",
    ),
    Person(
        "elif",
        {FERNHILL: Role.AUDITOR, BRIGHTWATER: Role.APPROVER},
        "read everything at Fernhill; approve at Brightwater",
    ),
)


def provider_config(url: str, resource: str, compared: tuple[str, ...]) -> dict[str, Any]:
    """How the `http` adapter asks the demo's provider; docs/adapters.md explains each field."""
    return {
        "request": {"url": f"{url}/{resource}?correlation_id={{correlation_id}}"},
        "matches": "/data",
        "reference": "/id",
        "state": {
            "pointer": "/status",
            "done": [DONE_WORDS[resource]],
            "in_progress": ["pending"],
            "failed": ["failed"],
            "reversed": ["reversed"],
        },
        "content": {f"/{name}": f"/{name}" for name in compared},
        "next_page": {"pointer": "/next"},
        "canary": {
            "request": {"url": f"{url}/{resource}/canary"},
            "pointer": "/id",
            "value": "canary",
        },
    }
