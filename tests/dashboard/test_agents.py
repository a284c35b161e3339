"""Agents and keys on the desk: keys are shown once, and what was refused to each stands beside it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from ledger.models import AccessChange, Agent, ApiKey
from review.agents import newest_key
from tests.dashboard.conftest import SignIn, body_of
from tests.support import make
from tests.support.cast import Cast

WHY = {"why": "I am sure"}


def here(people: Cast, rest: str = "") -> str:
    return f"/agents/acme/{people.agent.pk}/{rest}"


def presses(people: Cast) -> dict[str, dict[str, Any]]:
    """Everything an administrator can press, with what is typed."""
    key, newest = people.key.key_id, newest_key(people.agent)
    new = {"scopes": "tool:*", "verbs": ["ingest", "read"], "days": "30", "newest": newest}
    return {
        "/agents/acme/add/": {"name": "mailer", "owner": "operator", **WHY},
        here(people, "give/"): {"owner": "operator", **WHY},
        here(people, f"keys/{key}/rotate/"): {"overlap_h": "24", "days": "30", "newest": newest, **WHY},
        here(people, "new-key/"): {**new, **WHY},
        here(people, f"keys/{key}/revoke/"): WHY,
        here(people, "switch-off/"): WHY,
    }


def changes() -> int:
    return AccessChange.objects.exclude(by=None).count()


def test_those_in_charge_see_agents_with_owner_and_keys(people: Cast, signed_in: SignIn) -> None:
    ApiKey.objects.filter(pk=people.key.pk).update(last_used_at=people.key.created_at)
    for reader in (people.admin, people.auditor):
        client = signed_in(reader)
        assert "billing-bot" in body_of(client, "/agents/")
        body = body_of(client, here(people))
        for shown in (people.key.key_id, "tool:*", "target:*", "ingest and read", "Last used", "owner"):
            assert shown in body
        assert people.key.secret_hash not in body
    assert "Make a key" in body_of(signed_in(people.admin), here(people))
    assert "You need the right to administer in Acme" in body_of(signed_in(people.auditor), here(people))


def test_refusals_are_counted_by_key_and_problem_type(people: Cast, signed_in: SignIn) -> None:
    narrow = make.key(people.agent, "tool:note.*")
    for _ in range(2):
        make.posted(narrow, make.intent_of(make.TICKET))
    make.posted(people.key, make.intent_of("unknown.tool", args={"x": 1}))
    client = signed_in(people.admin)
    body = body_of(client, here(people))
    assert re.search(r'2 × <a href="/problems/scope-refused">', body)
    assert re.search(r'1 × <a href="/problems/policy-refused">', body)
    assert client.get("/problems/policy-refused").status_code == 200


@pytest.mark.parametrize("who", ["viewer", "operator", "approver", "auditor"])
def test_nobody_else_does_any_of_it(people: Cast, signed_in: SignIn, who: str) -> None:
    client = signed_in(getattr(people, who))
    for path, typed in presses(people).items():
        answer = client.post(path, typed)
        assert answer.status_code == 403, path
        assert b"I am sure" in answer.content
    if who != "auditor":
        assert client.get("/agents/").status_code == client.get(here(people)).status_code == 403
    assert changes() == 0


def test_strangers_get_the_404_of_what_does_not_exist(people: Cast, signed_in: SignIn) -> None:
    for reader in (people.stranger, people.superuser):
        client = signed_in(reader)
        for path, typed in presses(people).items():
            assert client.get(path).status_code == client.post(path, typed).status_code == 404, path
        assert client.get(here(people)).status_code == client.get("/agents/?tenant=acme").status_code == 404
    assert signed_in(people.inactive).get("/agents/").status_code == 303
    for path, typed in presses(people).items():
        assert Client().post(path, typed)["Location"].startswith("/sign-in/")
    assert changes() == 0


def test_an_administrator_does_each_of_it(people: Cast, signed_in: SignIn) -> None:
    client = signed_in(people.admin)
    for number, path in enumerate(presses(people), start=1):
        typed = presses(people)[path]
        assert client.get(path).status_code == 200, path
        answer = client.post(path, typed)
        assert answer.status_code in (200, 303), (path, answer.content.decode())
        assert changes() == number, path
    assert Agent.objects.get(name="mailer").owner == people.operator
    assert "I am sure" in body_of(client, here(people))


@pytest.mark.parametrize("press", ["rotate", "new-key"])
def test_a_key_is_shown_once_and_a_second_press_makes_none(
    people: Cast, signed_in: SignIn, press: str
) -> None:
    client = signed_in(people.admin)
    path, typed = next((path, typed) for path, typed in presses(people).items() if press in path)
    answer = client.post(path, typed)
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "no-store, private"
    (text,) = set(re.findall(r"ilk_[0-9A-Za-z_-]+", answer.content.decode()))
    assert text not in body_of(client, here(people))
    again = client.post(path, typed)
    assert again.status_code == 409
    assert b"changed since this page was read" in again.content
    assert b"ilk_" not in again.content
    assert people.agent.keys.count() == 2


def test_nothing_is_done_by_get_and_nothing_without_a_reason(people: Cast, signed_in: SignIn) -> None:
    client = signed_in(people.admin)
    for path, typed in presses(people).items():
        assert client.get(path, typed).status_code == 200
        assert client.post(path, {**typed, "why": " "}).status_code == 422, path
    assert changes() == 0


@pytest.mark.parametrize(
    ("rest", "wrong"),
    [
        ("new-key/", {"scopes": "nonsense"}),
        ("new-key/", {"scopes": "\n".join(["tool:x"] * 51)}),
        ("new-key/", {"verbs": ["fly"]}),
        ("new-key/", {"days": "0"}),
        ("new-key/", {"scopes": "target:x"}),
        ("give/", {"owner": "stranger"}),
    ],
)
def test_what_is_typed_wrong_is_said_where_it_was_typed(
    people: Cast, signed_in: SignIn, rest: str, wrong: dict[str, Any]
) -> None:
    path = here(people, rest)
    answer = signed_in(people.admin).post(path, {**presses(people)[path], **wrong})
    assert answer.status_code == 422
    assert b'class="errors"' in answer.content
    assert changes() == 0


def test_a_name_that_is_taken_is_refused(people: Cast, signed_in: SignIn) -> None:
    typed = {"name": "billing-bot", "owner": "operator", **WHY}
    answer = signed_in(people.admin).post("/agents/acme/add/", typed)
    assert answer.status_code == 422
    assert b"an agent of this name already" in answer.content


def test_switched_off_its_keys_are_refused_and_its_reports_are_facts(people: Cast, signed_in: SignIn) -> None:
    desk = signed_in(people.admin)
    path, typed = next((path, typed) for path, typed in presses(people).items() if "new-key" in path)
    (text,) = set(re.findall(r"ilk_[0-9A-Za-z_-]+", desk.post(path, typed).content.decode()))

    def called(call: str, **body: Any) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {text}"}
        answer = Client().post(f"/api/v1{call}", body, content_type="application/json", headers=headers)
        return answer.status_code, answer.json()

    def posted(number: int) -> tuple[int, Any]:
        args = make.ARGS[make.TICKET]
        return called("/intents", operation_key=f"off:{number}", tool=make.TICKET, args=args)

    def asked(attempt: Any) -> tuple[int, Any]:
        at = f"/attempts/{attempt['attempt_id']}/dispatch"
        return called(at, worker_id="w1", args_hash=attempt["args_hash"])

    (_, sent), (_, waiting) = posted(1), posted(2)
    assert asked(sent)[0] == 200

    assert desk.post(here(people, "switch-off/"), WHY).status_code == 303
    assert "Switched off: it gets no leave" in body_of(desk, here(people))
    for status, refused in (posted(3), asked(waiting)):
        assert (status, refused["type"]) == (403, "/problems/agent-inactive")
    outcome = f"/attempts/{sent['attempt_id']}/outcome"
    told = called(outcome, worker_id="w1", outcome="succeeded", result_ref="re_1")
    assert (told[0], told[1]["state"]) == (200, "OUTCOME_CONFIRMED")

    assert desk.post(here(people, "switch-off/"), WHY).status_code == 409
    assert desk.post(here(people, "switch-on/"), WHY).status_code == 303
    assert (posted(3)[0], asked(waiting)[0]) == (201, 200)


def test_what_is_not_there_is_nowhere(people: Cast, signed_in: SignIn) -> None:
    client = signed_in(people.admin)
    for path in (here(people, "run/"), here(people, "keys/nothing/revoke/"), "/agents/acme/0/"):
        assert client.get(path).status_code == client.get(path).status_code == 404
    ApiKey.objects.filter(pk=people.key.pk).update(revoked_at=people.key.created_at)
    answer = client.post(here(people, f"keys/{people.key.key_id}/revoke/"), WHY)
    assert answer.status_code == 409
    assert b"revoked already" in answer.content
