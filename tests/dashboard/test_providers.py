"""Providers on the desk: health, what could be sent, and no secret."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from ledger.models import Provider
from ledger.transactions import database_clock
from review.queries.providers import without_secrets
from tests.dashboard.conftest import SignIn, body_of
from tests.support import make
from tests.support.cast import Cast
from tests.support.provider import asking, sending

ADDRESS = "http://127.0.0.1:1/refunds"
ASKING = asking(ADDRESS, ["amount"])


def provider(people: Cast, config: dict[str, Any], name: str = "bank", **health: Any) -> Provider:
    return Provider.objects.create(tenant=people.tenant, name=name, adapter="http", config=config, **health)


def test_health_and_rules_are_shown_to_those_in_charge(people: Cast, signed_in: SignIn) -> None:
    now = database_clock()
    provider(people, ASKING, last_answer_at=now)
    provider(people, ASKING, "away", unavailable_since=now, failures=4)
    provider(
        people,
        ASKING,
        "shut",
        refused_credential="PROVIDER_X",
        credential_refused_since=now - timedelta(hours=2),
    )
    provider(people, {"nonsense": True}, "broken")
    for reader in (people.admin, people.auditor):
        body = body_of(signed_in(reader), "/providers/")
        for shown in (
            "refund.create",
            "is away",
            "PROVIDER_X",
            "2 h ago",
            "cannot be used",
            "No rule in force",
        ):
            assert shown in body, shown
        assert "Rules name the provider mail, and there is none." in body
        assert "does not say how to send" in body


def test_what_can_be_sent_through_it_is_said(people: Cast, signed_in: SignIn) -> None:
    provider(people, {**ASKING, "send": sending(ADDRESS, ["amount"])})
    make.policy(
        people.tenant,
        by=people.admin,
        tools={make.REFUND: {"effect": "payment", "provider": "bank", "executor": "ledger"}},
    )
    assert '<span class="same">yes</span>' in body_of(signed_in(people.admin), "/providers/")


def test_nobody_else_sees_them(people: Cast, signed_in: SignIn) -> None:
    for reader in (people.viewer, people.operator, people.approver):
        assert signed_in(reader).get("/providers/").status_code == 403
    for blind in (people.stranger, people.superuser):
        assert signed_in(blind).get("/providers/?tenant=acme").status_code == 404
    assert signed_in(people.inactive).get("/providers/").status_code == 303
    assert Client().get("/providers/")["Location"].startswith("/sign-in/")
    assert signed_in(people.admin).post("/providers/").status_code == 405


@pytest.mark.parametrize(
    ("config", "shown"),
    [
        ({"auth": {"env": "PROVIDER_X"}}, {"auth": {"env": "PROVIDER_X"}}),
        (
            {"headers": {"Authorization": "Bearer abc", "Idempotency-Key": "{idempotency_key}"}},
            {"headers": {"Authorization": "(hidden)", "Idempotency-Key": "{idempotency_key}"}},
        ),
        (
            {"request": {"url": "https://u:p@x.example/a?api_key=abc&id={correlation_id}&n=5"}},
            {"request": {"url": "https://(hidden)@x.example/a?api_key=(hidden)&id={correlation_id}&n=5"}},
        ),
        ({"list": [{"headers": ["x"]}, 5, None]}, {"list": [{"headers": ["(hidden)"]}, 5, None]}),
    ],
)
def test_what_could_hold_a_secret_is_hidden(config: dict[str, Any], shown: dict[str, Any]) -> None:
    assert without_secrets(config) == shown
