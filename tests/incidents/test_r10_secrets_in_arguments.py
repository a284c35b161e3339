"""R10: secrets inside arguments are hidden on one exit and written whole to the event log, the search, a log.

Kind: hidden at one exit and open at another. What a rule's `mask` names is kept in the stored bytes alone,
which are hashed and sent; on every page, in the searchable copy, in records of a provider, in reports,
events, metrics and logs it is `[masked]`, also where the mask is newer than the work. Our rules decide
otherwise than the report asked: the bytes themselves must be kept, since they are what is approved and sent;
and what no mask names cannot be known to be a secret.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from django.conf import settings
from django.db import DatabaseError, connection
from django.test import Client

from ledger.access import Grant
from ledger.management.local.home import Home
from ledger.models import Attempt, Provider, ReviewItem, User
from ledger.rules.keys import parse_api_key
from ledger.transactions import database_clock
from review import decisions
from review.queries import QueueFilters, queue
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import NOTE, OTHER_CONTENT, RESOURCES, RULES, Body, Scene, configuration, key_for
from tests.ledger.commands.support import run
from tests.ledger.ingest.steps import hash_of
from tests.support import make
from tests.support.api import slug_of

VAULT = "vault.call"
X, Y, Z, PIN = "Bearer xk3f9a81c7e5", "yk77d0c2e4b1", 'deploy --token=zk5b1e9d "é"', 824193
SECRETS = (X, "xk3f9a81c7e5", Y, "zk5b1e9d", str(PIN))
ARGS: Body = {
    "headers": {"Authorization": X, "Accept": "json"},
    "list": [{"api_key": Y, "name": "first"}],
    "cmd": Z,
    "pin": PIN,
    "to": "Ada",
}
MASK = ["/headers/Authorization", "/list/0/api_key", "/cmd", "/pin"]
RULE = {
    "effect": "write", "provider": "vaults", "review": "always", "mask": MASK,
    "summary": "Call {cmd} for {to} with {pin}",
}  # fmt: skip


@pytest.fixture
def vault(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """The scene with a tool whose arguments hold secrets, which its provider gives back in its records."""
    monkeypatch.setitem(RESOURCES, VAULT, "tickets")
    publish(scene, RULE)
    config = configuration(scene.provider.url, NOTE) | {"content": {"/to": "/to"}}
    Provider.objects.create(tenant=scene.people.tenant, name="vaults", adapter="http", config=config)
    return scene


def publish(scene: Scene, rule: Body) -> None:
    make.policy(scene.people.tenant, by=scene.people.admin, tools={**RULES, VAULT: rule})


def approved_and_lost(scene: Scene) -> Body:
    """Approved, sent, and lost: the agent says what it sent in the words of its error."""
    scene.approve(scene.recorded("k1", VAULT, ARGS))
    leave = scene.dispatched(scene.recorded("k1", VAULT, ARGS))
    assert leave["args"] == ARGS, "who has leave gets what is to be sent"
    scene.send(leave)
    scene.report(leave, "unknown", error={"class": "reset", "message": f"lost {X} while {Z} ran"})
    return leave


def whole_story(scene: Scene) -> Body:
    """Through every corner in which arguments could turn up."""
    leave = approved_and_lost(scene)
    scene.asks(OTHER_CONTENT)  # hash_mismatch, with the provider's record
    assert scene.attempt(leave).reason == "hash_mismatch"
    item = make.item_of(scene.attempt(leave))
    decisions.recheck(scene.people.operator, item.pk, why="look again")
    scene.asks()
    assert scene.state(leave) == "OUTCOME_CONFIRMED"
    scene.intent("k1", NOTE, {"text": "another tool under the key"})
    scene.report(leave, "succeeded", result_ref="another")  # contradicts it: conflicting_evidence
    return leave


def pages(person: User, scene: Scene) -> Iterator[tuple[str, str]]:
    """Every page of the desk about what is open or was decided, as this person sees it."""
    browser = Client()
    browser.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    lists = ["/review/", "/review/?tab=decided", "/review/?tab=waiting", "/review/?text=Ada"]
    items = [
        f"/review/{item.pk}/{rest}"
        for item in ReviewItem.objects.filter(tenant=scene.people.tenant)
        for rest in (
            "",
            "arguments/",
            "approve/",
            "reject/",
            "relink-arguments/",
            "relink-record/",
            "nowhere/",
        )
    ]
    for address in [*lists, *items]:
        yield address, browser.get(address, follow=True).content.decode()


def exits(scene: Scene, leave: Body) -> Iterator[tuple[str, str]]:
    """Everything that comes out anywhere."""
    yield from pages(scene.people.approver, scene)
    for path in (
        "/operations",
        f"/operations/{leave['operation_id']}",
        f"/operations/{leave['operation_id']}/events",
    ):
        yield path, scene.api.get(path).text
    for name, answer in {
        "replayed": scene.intent("k1", VAULT, ARGS),
        "reused": scene.intent("k1", VAULT, {**ARGS, "to": "Eve"}),
        "malformed": scene.api.post_bytes("/intents", json.dumps({"args": ARGS, "x": 1}).encode()),
        "no leave": scene.dispatch(leave, worker="w9"),
    }.items():
        yield name, answer.text
    yield "metrics", httpx.get(f"{scene.server.address}/metrics", trust_env=False).text
    yield "log of the web server", scene.server.said()
    yield "log of the database", _log_of_database()
    for command in ("fsck", "verify_history", "doctor"):
        yield command, json.dumps(run(command).data)


def _log_of_database() -> str:
    log = Home(Path(settings.HOME.path)).logs / "postgres.log"
    return log.read_text(errors="replace") if log.exists() else ""


def stores() -> Iterator[tuple[str, str]]:
    """Every row of every table as text, but for the bytes of the arguments themselves."""
    tables = connection.introspection.table_names()
    with connection.cursor() as cursor:
        for table in tables:
            shown = "(to_jsonb(t) - 'args_bytes')" if table == "ledger_attempt" else "to_jsonb(t)"
            cursor.execute(f'SELECT {shown}::text FROM "{table}" t')  # noqa: S608
            for (row,) in cursor.fetchall():
                yield table, row


def holds_no_secret(found: Iterator[tuple[str, str]], *more: str) -> None:
    looked = 0
    for where, text in found:
        looked += 1
        for secret in (*SECRETS, *more):
            assert secret not in text, (
                f"{secret!r} in {where}: …{text[max(0, text.find(secret) - 200) :][:400]}"
            )
    assert looked


def test_no_exit_and_no_store_shows_what_is_masked(vault: Scene, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    leave = whole_story(vault)
    api_key = parse_api_key(vault.api.http.headers["Authorization"].removeprefix("Bearer "))
    assert api_key
    holds_no_secret(exits(vault, leave), api_key.secret)
    holds_no_secret(stores(), api_key.secret)
    for secret in SECRETS:
        assert secret not in caplog.text
    assert vault.attempt(leave).args_hash == hash_of(ARGS), "the hash is of everything"
    (told,) = vault.events(leave, "attempt.outcome_reported")[:1]
    assert told["message"] == "lost [masked] while [masked] ran"
    nothing_else_went_wrong(vault)


def test_a_page_says_that_something_is_hidden(vault: Scene) -> None:
    held = vault.recorded("k1", VAULT, ARGS)
    page = vault.item_page(held)
    assert page.arguments.masked == tuple(MASK)
    assert page.sentence == "Call [cmd masked] for Ada with [pin masked]"
    assert page.arguments.hash.full == hash_of(ARGS)
    assert '"Accept": "json"' in page.arguments.text
    nothing_else_went_wrong(vault)


def test_a_mask_published_later_hides_older_work(vault: Scene) -> None:
    publish(vault, {**RULE, "mask": []})
    leave = approved_and_lost(vault)
    vault.asks(OTHER_CONTENT)
    assert X in vault.item_page(leave).arguments.text
    publish(vault, RULE)
    holds_no_secret(pages(vault.people.approver, vault))
    nothing_else_went_wrong(vault)


def test_a_reference_made_of_what_is_masked_is_hidden_on_every_page(vault: Scene) -> None:
    """Its agent may name the result after the arguments, and another attempt's page shows the chain."""
    leave = approved_and_lost(vault)
    vault.intent("k1", VAULT, {**ARGS, "list": [{"api_key": "zk00aa11bb22", "name": "first"}]})
    vault.report(leave, "succeeded", result_ref=f"call-{Y}", provider_request_id=f"req-{Y}")
    holds_no_secret(pages(vault.people.approver, vault))
    assert vault.item_page(leave).evidence.result_ref == "call-[masked]"


def test_the_search_tells_nothing_about_what_it_may_not_show(vault: Scene) -> None:
    vault.recorded("k1", VAULT, ARGS)
    found = {
        text: len(queue(vault.people.viewer, QueueFilters(text=text)).rows)
        for text in (*SECRETS, "Ada", "824")
    }
    assert found == {**dict.fromkeys((*SECRETS, "824"), 0), "Ada": 1}
    nothing_else_went_wrong(vault)


def test_what_another_tools_rule_masks_stays_masked_beside_this_one(vault: Scene) -> None:
    vault.recorded("k1", NOTE)
    held = vault.intent("k1", VAULT, ARGS).json()
    vault.recorded("k2", VAULT, ARGS)
    vault.intent("k2", NOTE)
    holds_no_secret(pages(vault.people.approver, vault))
    assert vault.item_page(held).comparisons
    nothing_else_went_wrong(vault)


@pytest.mark.parametrize("asker", ["revoked", "expired", "another tool's", "another agent's, switched off"])
def test_stored_arguments_are_told_only_to_who_could_send_them(vault: Scene, asker: str) -> None:
    """A worker that means other arguments is told the stored ones: not one whose key is good for nothing."""
    held = vault.recorded("k1", VAULT, ARGS)
    with vault.api.as_key(key_of(vault, asker)) as other:
        path = f"/attempts/{held['attempt_id']}/dispatch"
        answer = other.post(path, worker_id="w", args_hash=hash_of({}))
    assert answer.status_code in {403, 409}
    assert "args" not in answer.json()
    for secret in SECRETS:
        assert secret not in answer.text
    right = vault.dispatch(held, args_hash=hash_of({}))
    assert (slug_of(right), right.json()["args"]) == ("args-changed", ARGS)
    nothing_else_went_wrong(vault)


def key_of(scene: Scene, asker: str) -> str:
    if asker == "another tool's":
        return key_for(scene.people.agent, scopes=["tool:note.*"])
    if asker == "another agent's, switched off":
        other = make.agent(scene.people.tenant, scene.people.owner, "retired")
        text = key_for(other)
        type(other).objects.filter(pk=other.pk).update(is_active=False)
        return text
    text, row = make.key_of(scene.people.agent, Grant(["tool:*", "target:*"], ["ingest"], 1))
    name = "revoked_at" if asker == "revoked" else "expires_at"
    type(row).objects.filter(pk=row.pk).update(**{name: database_clock()})
    return text


def test_an_error_of_the_database_takes_no_row_into_the_log(vault: Scene) -> None:
    """What a constraint refuses is described with the whole row by the database, not by our log."""
    leave = approved_and_lost(vault)
    with pytest.raises(DatabaseError, match="Failing row contains") as failed:
        Attempt.objects.filter(pk=leave["attempt_id"]).update(reason="")
    info = (failed.type, failed.value, failed.tb)
    record = logging.LogRecord("x", logging.ERROR, "x", 1, "it failed: %r", (failed.value,), info)
    line = structlog.stdlib.ProcessorFormatter(**_formatting()).format(record)
    assert "open_has_reason" in line
    assert "Ada" not in line
    assert "Failing row contains" not in line
    assert "Failing row contains" not in _log_of_database()


def _formatting() -> dict[str, Any]:
    logging_settings: dict[str, Any] = settings.LOGGING
    formatter = logging_settings["formatters"]["json"]
    return {name: value for name, value in formatter.items() if name != "()"}
