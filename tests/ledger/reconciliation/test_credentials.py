"""A provider that refuses our credential: said where somebody can mend it, and taken back when it is."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from ledger.models import Attempt, Provider, ReviewItem
from ledger.queries.numbers import numbers
from ledger.reconciliation import reconcile_once
from ledger.reconciliation.advice import Advice, advice_on_everything, advice_on_policy
from ledger.rules.states import State
from ledger.transactions import database_clock
from tests.ledger.commands.support import run
from tests.ledger.reconciliation.desk import OWN, REFUND, Desk
from tests.support import make


def asked_again(desk: Desk, mode: str) -> Provider:
    """One pass of look-ups, with the provider in this mode."""
    desk.provider.set_mode(mode)
    Attempt.objects.update(next_check_at=database_clock())
    Provider.objects.filter(probe_at__isnull=False).update(probe_at=database_clock())
    reconcile_once()
    return Provider.objects.get()


def metric(name: str) -> dict[str, float]:
    (found,) = [number for number in numbers(database_clock()) if number.name == name]
    return dict(found.values)


def refusals(desk: Desk) -> list[Advice]:
    about = f"provider bank of {desk.people.tenant.slug}"
    return [each for each in advice_on_everything() if each.about == about]


@pytest.fixture
def several(desk: Desk) -> Desk:
    """Three attempts that wait for the provider's answer."""
    desk.rule(executor="agent")
    desk.configure(auth={"env": "PROVIDER_BANK_TOKEN"})
    for number in range(3):
        make.unknown(desk.people.key, REFUND, args={"amount": number, "currency": "EUR"})
    return desk


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROVIDER_BANK_TOKEN", "any")


@pytest.mark.parametrize("mode", ["forbidden"])
def test_it_is_said_once_and_floods_nobody(several: Desk, mode: str) -> None:
    items = ReviewItem.objects.count()
    for _ in range(3):
        provider = asked_again(several, mode)
    assert provider.refused_credential == "PROVIDER_BANK_TOKEN"
    since = provider.credential_refused_since
    assert since is not None
    assert ReviewItem.objects.count() == items
    assert {attempt.state for attempt in Attempt.objects.all()} == {State.UNKNOWN}
    assert metric("ledger_credentials_refused") == {"http": 1}
    (advice,) = refusals(several)
    assert "PROVIDER_BANK_TOKEN" in advice.mend
    provider = asked_again(several, "honest")
    assert (provider.refused_credential, provider.credential_refused_since) == ("", None)
    assert metric("ledger_credentials_refused") == {}
    assert refusals(several) == []


def test_an_outage_is_no_refusal(several: Desk) -> None:
    provider = asked_again(several, "server_error")
    assert provider.unavailable_since is not None
    assert provider.refused_credential == ""


def test_a_key_that_sees_not_even_the_canary_is_to_be_mended_too(several: Desk) -> None:
    config = Provider.objects.get().config
    canary = {**config["canary"], "value": "somebody else's"}
    several.configure(auth=config["auth"], canary=canary)
    provider = asked_again(several, "honest")
    assert provider.refused_credential == "PROVIDER_BANK_TOKEN"
    assert provider.unavailable_since is not None, "it is no readable answer"


def test_the_item_says_who_must_mend_what(several: Desk, client: Client) -> None:
    item = ReviewItem.objects.first()
    assert item is not None
    client.force_login(several.people.approver)
    page = reverse("item", args=[item.pk])
    assert b"PROVIDER_BANK_TOKEN" not in client.get(page).content
    asked_again(several, "forbidden")
    assert b"PROVIDER_BANK_TOKEN" in client.get(page).content


# --- rules whose provider leads nowhere --------------------------------------------------------------------


def said_of(desk: Desk, **rule: object) -> list[str]:
    snapshot = make.policy(desk.people.tenant, tools={REFUND: {**OWN, **rule}})
    return [each.problem for each in advice_on_policy(snapshot)]


def test_a_rule_that_fits_needs_no_advice(desk: Desk) -> None:
    assert said_of(desk) == []


def test_a_provider_that_is_not_there_is_warned_of(desk: Desk) -> None:
    snapshot = make.policy(desk.people.tenant, tools={REFUND: {**OWN, "provider": "nobody"}})
    (advice,) = advice_on_policy(snapshot)
    assert "is not configured" in advice.problem
    assert "python manage.py add_provider" in advice.mend


def test_a_provider_that_cannot_send_is_warned_of(desk: Desk) -> None:
    config = Provider.objects.get().config
    del config["send"]
    Provider.objects.update(config=config)
    assert ["does not say how to send" in said for said in said_of(desk)] == [True]
    assert said_of(desk, executor="agent") == []


def test_a_log_that_lags_longer_than_the_settle_window_is_warned_of(desk: Desk) -> None:
    message = {"from": "b@example.org", "to": "{args/to}", "subject": "x", "text": "y"}
    sent = {"maildir": {"env": "PROVIDER_MAIL_SENT"}}
    config = {
        "domain": "example.org",
        "message": message,
        "sent": sent,
        "canary": "<c@example.org>",
        "lag_s": 120,
    }
    Provider.objects.update(adapter="smtp", config=config)
    (said,) = said_of(desk, executor="agent", settle_s=30)
    assert "120 s late" in said
    assert said_of(desk, executor="agent", settle_s=120) == []


def test_publishing_warns_and_is_not_refused(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "policy.json"
    file.write_text('{"tools": {"pay": {"effect": "payment", "executor": "ledger", "provider": "nobody"}}}')
    ran = run("publish_policy", "--tenant", desk.people.tenant.slug, str(file))
    assert (ran.exit, ran.data["published"], ran.data["providers_missing"]) == (0, True, ["nobody"])
    assert ran.data["warnings"][0] in [asdict(each) for each in advice_on_everything()]
    assert "add_provider --tenant" in ran.data["warnings"][0]["mend"]


def test_the_doctor_names_it(desk: Desk) -> None:
    make.policy(desk.people.tenant, tools={REFUND: {**OWN, "provider": "nobody"}})
    found = run("doctor").data["findings"]
    subject = f"rule {REFUND} of {desk.people.tenant.slug}"
    (said,) = [each for each in found if each["subject"] == subject]
    assert "add_provider" in said["mend"]
