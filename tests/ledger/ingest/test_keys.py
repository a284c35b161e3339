"""Which key may make which call, and that a wrong one learns nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import httpx
import pytest

from ledger.access import switch_agent
from ledger.models import ApiKey, Event
from ledger.rules.keys import format_api_key, parse_api_key
from ledger.transactions import database_clock, durable
from tests.ledger.ingest.cast import Cast
from tests.ledger.ingest.steps import (
    fail_without_effect,
    hash_of,
    new_attempt,
    post_dispatch,
    post_intent,
    post_outcome,
    sent_attempt,
)
from tests.support.api import Api, slug_of

Call = Callable[[Api, dict[str, Any]], httpx.Response]

CALLS: dict[str, tuple[str, Call]] = {
    "intent": ("ingest", lambda api, _at: post_intent(api)),
    "dispatch": ("ingest", post_dispatch),
    "heartbeat": (
        "ingest",
        lambda api, at: api.post(f"/attempts/{at['attempt_id']}/heartbeat", worker_id="w1", lease_epoch=1),
    ),
    "provider-request": (
        "ingest",
        lambda api, at: api.post(
            f"/attempts/{at['attempt_id']}/provider-request", worker_id="w1", provider_request_id="p"
        ),
    ),
    "outcome": ("ingest", lambda api, at: post_outcome(api, at, "unknown")),
    "cancel": ("ingest", lambda api, at: api.post(f"/operations/{at['operation_id']}/cancel", reason="x")),
    "recover": ("ingest", lambda api, _at: api.post("/recover", worker_id="nobody")),
    "operation": ("read", lambda api, at: api.get(f"/operations/{at['operation_id']}")),
    "operations": ("read", lambda api, _at: api.get("/operations")),
    "events": ("read", lambda api, at: api.get(f"/operations/{at['operation_id']}/events")),
    "open run": ("ingest", lambda api, _at: api.put("/runs/r1")),
    "run": ("read", lambda api, _at: api.get("/runs/r0")),
    "usage": ("ingest", lambda api, _at: api.post("/runs/r0/usage", usage_id="u", usage={"turns": 1})),
    "checkpoint": (
        "ingest",
        lambda api, _at: api.put("/runs/r0/checkpoint", sequence=1, reference="x", content_hash=hash_of({})),
    ),
}

REPORTS = {"outcome", "provider-request"}
ASKS_AUTHORITY = {"intent", "dispatch"}


@pytest.fixture
def sent(api: Api) -> dict[str, Any]:
    return sent_attempt(api, run="r0")


def wrong_keys(cast: Cast) -> dict[str, str]:
    good = cast.key()[0]
    head, key_id, secret, check = good.split("_")[0], good.split("_")[1], good[21:-9], good[-8:]
    theirs = parse_api_key(cast.key()[0])
    ours = parse_api_key(good)
    assert theirs
    assert ours
    return {
        "none": "",
        "nonsense": "nonsense",
        "cut": good[:-1],
        "wrong check": good[:-1] + ("0" if good[-1] != "0" else "1"),
        "unknown id": "_".join((head, "0" * len(key_id), secret, check)),
        "another key's secret": format_api_key(theirs.key_id, ours.secret),
        "revoked too long ago": cast.revoked_key(days_ago=8),
        "in capitals": good.upper(),
        "twice": f"{good}, {good}",
        "of 10 kB": "ilk_" + "a" * 10_000,
    }


def test_every_kind_of_wrong_key_gets_the_same_answer(api: Api, cast: Cast) -> None:
    wrong = wrong_keys(cast)
    bodies = set()
    for kind, text in wrong.items():
        with api.as_key(text) as guesser:
            answer = guesser.get("/operations")
        assert (answer.status_code, slug_of(answer)) == (401, "unauthorized"), kind
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        bodies.add(answer.text.replace(answer.json()["request_id"], ""))
    assert len(bodies) == 1


@pytest.mark.parametrize("header", ["Basic x", "bearer", "Bearer", "Token x", "\xff"])
def test_other_ways_to_authenticate_are_none(api: Api, header: str) -> None:
    answer = api.http.get("/operations", headers={b"Authorization": header.encode("latin-1")})
    assert (answer.status_code, slug_of(answer)) == (401, "unauthorized")


def test_a_key_in_the_address_is_none(api: Api, cast: Cast) -> None:
    with api.as_key("") as nobody:
        assert nobody.get("/operations", api_key=cast.key()[0]).status_code == 401


@pytest.mark.parametrize("call", CALLS)
def test_every_call_needs_a_key(api: Api, sent: dict[str, Any], call: str) -> None:
    with api.as_key("") as nobody:
        assert slug_of(CALLS[call][1](nobody, sent)) == "unauthorized"


@pytest.mark.parametrize("call", CALLS)
def test_every_call_needs_its_verb(api: Api, cast: Cast, sent: dict[str, Any], call: str) -> None:
    verb, make = CALLS[call]
    others = [other for other in ("ingest", "read", "ack", "admin") if other != verb]
    with api.as_key(cast.key(verbs=others)[0]) as narrow:
        answer = make(narrow, sent)
    assert (answer.status_code, slug_of(answer)) == (403, "scope-refused")
    assert verb in answer.json()["detail"]
    assert make(api, sent).status_code < 300


@pytest.mark.parametrize("call", CALLS)
def test_a_revoked_key_may_only_report(api: Api, cast: Cast, sent: dict[str, Any], call: str) -> None:
    with api.as_key(cast.revoked_key(days_ago=6)) as revoked:
        answer = CALLS[call][1](revoked, sent)
    if call in REPORTS:
        assert answer.status_code == 200
    else:
        assert (answer.status_code, slug_of(answer)) == (403, "key-revoked")
        assert answer.json()["reasons"][0] == "key-revoked"


@pytest.mark.parametrize("call", CALLS)
def test_an_expired_key_may_still_finish(api: Api, cast: Cast, sent: dict[str, Any], call: str) -> None:
    with api.as_key(cast.expired_key()) as expired:
        answer = CALLS[call][1](expired, sent)
    if call in REPORTS | {"heartbeat"}:
        assert answer.status_code == 200
    else:
        assert (answer.status_code, slug_of(answer)) == (403, "key-expired")


def test_a_success_told_by_a_revoked_key_settles_nothing(api: Api, cast: Cast, sent: dict[str, Any]) -> None:
    with api.as_key(cast.revoked_key(days_ago=1)) as revoked:
        body = post_outcome(revoked, sent, result_ref="r").json()
    assert body["outcome"] == "open"
    assert body["state"] in {"UNKNOWN", "MANUAL_REVIEW"}
    assert Event.objects.filter(attempt=sent["attempt_id"], kind="attempt.outcome_reported").exists()


def test_an_agent_whose_owner_is_switched_off_reads_nothing_but_may_report(
    api: Api, cast: Cast, sent: dict[str, Any]
) -> None:
    cast.owner.is_active = False
    cast.owner.save()
    answer = api.get("/operations")
    assert (answer.status_code, slug_of(answer)) == (403, "owner-inactive")
    assert fail_without_effect(api, sent, retryable=False).status_code == 200


@pytest.mark.parametrize("call", CALLS)
def test_an_agent_switched_off_may_only_finish_until_it_is_switched_on(
    api: Api, cast: Cast, sent: dict[str, Any], call: str
) -> None:
    durable(lambda: switch_agent(cast.agent, on=False, by=cast.owner, why="it loops"))
    for text in ("", cast.key()[0]):  # each key of it
        with api.as_key(text) if text else nullcontext(api) as switched_off:
            answer = CALLS[call][1](switched_off, sent)
        if call in REPORTS | {"heartbeat"}:
            assert answer.status_code == 200
        else:
            assert (answer.status_code, slug_of(answer)) == (403, "agent-inactive")
            assert answer.json()["safe_to_dispatch"] is False
    durable(lambda: switch_agent(cast.agent, on=True, by=cast.owner, why="mended"))
    again = CALLS[call][1](api, sent)
    assert again.status_code < 300 or slug_of(again) != "agent-inactive"


def test_what_a_switched_off_agent_reports_is_a_fact(api: Api, cast: Cast, sent: dict[str, Any]) -> None:
    durable(lambda: switch_agent(cast.agent, on=False, by=cast.owner, why="it loops"))
    told = post_outcome(api, sent, result_ref="r").json()
    assert (told["state"], told["outcome"]) == ("OUTCOME_CONFIRMED", "confirmed")


def test_a_suspended_tenant_still_reads_and_reports(api: Api, cast: Cast, sent: dict[str, Any]) -> None:
    cast.tenant.suspended_at = database_clock()
    cast.tenant.save()
    assert api.get(f"/operations/{sent['operation_id']}").status_code == 200
    assert post_outcome(api, sent, result_ref="r").json()["state"] == "OUTCOME_CONFIRMED"


def test_the_last_use_is_noted_about_once_a_minute(api: Api, cast: Cast) -> None:
    text, row = cast.key()
    with api.as_key(text) as user:
        user.get("/operations")
        row.refresh_from_db()
        first = row.last_used_at
        assert first is not None
        user.get("/operations")
        row.refresh_from_db()
        assert row.last_used_at == first
        ApiKey.objects.filter(pk=row.pk).update(last_used_at=first - timedelta(minutes=2))
        user.get("/operations")
    row.refresh_from_db()
    assert row.last_used_at is not None
    assert row.last_used_at >= first


def test_another_key_of_the_agent_is_the_same_agent(api: Api, cast: Cast) -> None:
    attempt = new_attempt(api)
    with api.as_key(cast.key()[0]) as second:
        assert post_dispatch(second, attempt).status_code == 200
        assert post_outcome(second, attempt, result_ref="r").json()["state"] == "OUTCOME_CONFIRMED"
