"""Access on the desk: who opens it, what each may do there, and everybody's own permissions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from ledger.models import AccessChange, User
from review import decisions, ownership
from review.models import ApprovalScope
from review.rights import rights_of
from review.roles import Role, grant_role
from tests.dashboard.conftest import SignIn, body_of
from tests.support import make
from tests.support.cast import Cast, person

WHY = {"why": "I am sure"}


def here(user: User, press: str = "") -> str:
    return f"/access/acme/{user.pk}/" + (f"{press}/" if press else "")


def presses(people: Cast) -> dict[str, dict[str, Any]]:
    """Everything an administrator can press, with what is typed."""
    scope = ApprovalScope.objects.get(tenant=people.tenant)
    return {
        here(people.viewer, "give-role"): {"role": "operator", **WHY},
        here(people.second_operator, "take-role"): {"role": "operator", **WHY},
        here(people.operator, "give-scope"): {"tools": "email.*", "effects": ["message"], **WHY},
        here(people.second_approver, "take-scope"): {"scope": scope.pk, **WHY},
        here(people.approver, "switch-off"): WHY,
        here(people.inactive, "switch-on"): WHY,
        here(people.second_operator, "new-link"): WHY,
        "/access/acme/admit/": {"username": "stranger", "role": "viewer", **WHY},
        "/access/acme/add/": {"username": "nora", "display_name": "Nora Nil", "role": "viewer", **WHY},
    }


def changes() -> int:
    """How many lines of the record were written from the desk."""
    return AccessChange.objects.exclude(by=None).count()


def test_those_in_charge_see_people_and_record(people: Cast, signed_in: SignIn) -> None:
    for reader in (people.admin, people.auditor):
        client = signed_in(reader)
        body = body_of(client, "/access/")
        assert 'href="/access/"' in body
        for shown in ("Access to Acme", "second-operator", "switched off", "* (every effect)"):
            assert shown in body
        assert "stranger" not in body
        assert body_of(client, "/access/?tenant=acme") != ""
        body_of(client, here(people.operator))


def test_who_is_not_in_charge_is_told_who_gives_the_right(people: Cast, signed_in: SignIn) -> None:
    for reader in (people.viewer, people.operator, people.approver):
        client = signed_in(reader)
        assert 'href="/access/"' not in body_of(client, "/review/")
        for path in ("/access/", "/access/?tenant=acme", here(people.operator)):
            answer = client.get(path)
            assert answer.status_code == 403, path
            assert b"administer or to audit in Acme" in answer.content
            assert b"<strong>admin</strong>" in answer.content


def test_a_stranger_gets_the_404_of_what_does_not_exist(people: Cast, signed_in: SignIn) -> None:
    for reader in (people.stranger, people.superuser):
        client = signed_in(reader)
        for path in ("/access/?tenant=acme", here(people.operator), *presses(people)):
            assert client.get(path).status_code == 404, path
        for path, typed in presses(people).items():
            assert client.post(path, typed).status_code == 404, path
        assert client.get("/access/?tenant=nowhere").status_code == 404
    assert signed_in(people.superuser).get("/access/").status_code == 403
    assert signed_in(people.inactive).get("/access/").status_code == 303
    assert changes() == 0


def test_the_anonymous_are_sent_to_sign_in(people: Cast) -> None:
    for path in ("/access/", "/access/me/", here(people.operator), *presses(people)):
        assert Client().get(path)["Location"].startswith("/sign-in/"), path
    for path, typed in presses(people).items():
        assert Client().post(path, typed)["Location"].startswith("/sign-in/"), path
    assert changes() == 0


def test_an_administrator_does_each_of_it(people: Cast, signed_in: SignIn) -> None:
    client = signed_in(people.admin)
    for number, (path, typed) in enumerate(presses(people).items(), start=1):
        assert client.get(path).status_code == 200, path
        answer = client.post(path, typed)
        assert answer.status_code in (200, 303), (path, answer.content.decode())
        assert changes() == number
        there = answer["Location"].split("#")[0] if answer.status_code == 303 else ""
        assert "I am sure" in (body_of(client, there) if there else answer.content.decode())


@pytest.mark.parametrize("who", ["viewer", "operator", "approver", "auditor"])
def test_nobody_else_does_any_of_it_and_keeps_what_they_typed(
    people: Cast, signed_in: SignIn, who: str
) -> None:
    client = signed_in(getattr(people, who))
    for path, typed in presses(people).items():
        answer = client.post(path, typed)
        assert answer.status_code == 403, path
        assert b"I am sure" in answer.content
    assert changes() == 0


def test_nothing_is_done_by_get_and_nothing_without_a_reason(people: Cast, signed_in: SignIn) -> None:
    client = signed_in(people.admin)
    for path, typed in presses(people).items():
        assert client.get(path, typed).status_code == 200
        answer = client.post(path, {**typed, "why": " "})
        assert answer.status_code == 422, path
        assert b'role="alert"' in answer.content
    assert changes() == 0


def test_an_administrator_is_told_why_they_give_themselves_nothing(people: Cast, signed_in: SignIn) -> None:
    client = signed_in(people.admin)
    body = body_of(client, here(people.admin))
    assert "Nobody gives rights to themselves" in body
    answer = client.post(here(people.admin, "give-role"), {"role": "approver", **WHY})
    assert answer.status_code == 409
    assert b"Nobody gives rights to themselves" in answer.content
    assert b"I am sure" in answer.content
    answer = client.post(here(people.admin, "take-role"), {"role": "admin", **WHY})
    assert (answer.status_code, changes()) == (409, 0)
    assert b"the last administrator of Acme" in answer.content


def test_a_press_that_is_gone_says_so(people: Cast, signed_in: SignIn) -> None:
    client = signed_in(people.admin)
    User.objects.filter(pk=people.operator.pk).update(is_active=False)
    answer = client.post(here(people.operator, "switch-off"), WHY)
    assert answer.status_code == 409
    assert b"switched off already" in answer.content


def test_who_takes_their_own_charge_away_sees_what_is_left(people: Cast, signed_in: SignIn) -> None:
    grant_role(people.second_operator, people.tenant, Role.ADMIN)
    client = signed_in(people.second_operator)
    answer = client.post(here(people.second_operator, "take-role"), {"role": "admin", **WHY})
    assert (answer.status_code, answer["Location"]) == (303, "/access/me/")


def test_a_person_shows_what_would_end_and_then_that_it_ended(people: Cast, signed_in: SignIn) -> None:
    held, claimed = make.held(people.key), make.for_a_person(people.key)
    decisions.approve(people.approver, make.item_of(held).pk, why="go")
    ownership.claim(people.approver, make.item_of(claimed).pk)
    client = signed_in(people.admin)
    body = body_of(client, here(people.approver))
    for shown in (
        "Deploy 2026.11",
        "in a waiting approval",
        "Open a ticket",
        "claimed",
        "votes (1) are void",
    ):
        assert shown in body
    client.post(here(people.approver, "take-role"), {"role": "viewer", **WHY})
    body = body_of(client, here(people.approver))
    for shown in ("Role taken", "claims: 1", "votes: 1", "roles: viewer, operator, approver"):
        assert shown in body
    assert "approver lost the right" in body_of(client, f"/review/{make.item_of(held).pk}/")


def test_own_permissions_say_what_why_not_and_who_gives_it(people: Cast, signed_in: SignIn) -> None:
    for reader in (people.viewer, people.operator, people.approver, people.admin, people.auditor):
        body = body_of(signed_in(reader), "/access/me/")
        rights = rights_of(reader, people.tenant)
        assert ("You need the right to decide work in Acme." in body) is not rights.decide
        assert ("You need the right to administer in Acme." in body) is not rights.administer
        assert ("* (every effect)" in body) is bool(rights.scopes)
        assert "<strong>admin</strong>" in body
        assert "Globex" not in body
    assert "You may not approve what the agent billing-bot asks" in body_of(
        signed_in(people.owner), "/access/me/"
    )
    assert signed_in(people.superuser).get("/access/me/").status_code == 403


def test_more_people_and_more_work_take_no_more_queries(people: Cast, signed_in: SignIn) -> None:
    client = signed_in(people.admin)

    def queries(path: str) -> int:
        with CaptureQueriesContext(
            connection,
        ) as counted:
            body_of(client, path)
        return len(counted)

    def more(number: int) -> None:
        person(f"more-{number}", people.tenant, Role.APPROVER)
        item = make.item_of(make.for_a_person(people.key))
        ownership.claim(people.approver, item.pk)
        decisions.approve(people.approver, make.item_of(make.held(people.key)).pk, why="go")

    more(0)
    paths = ("/access/", here(people.approver))
    before = [queries(path) for path in paths]
    for number in range(1, 4):
        more(number)
    assert [queries(path) for path in paths] == before


@pytest.mark.parametrize("bad", ["0", "99999999999999999999999", "x"])
def test_ids_that_cannot_be_are_nowhere(people: Cast, signed_in: SignIn, bad: str) -> None:
    client = signed_in(people.admin)
    ask: Callable[[str], int] = lambda path: client.get(path).status_code  # noqa: E731
    assert ask(f"/access/acme/{bad}/") == ask(f"/access/acme/{bad}/give-role/") == 404
    assert ask(here(people.viewer, "run")) == ask("/access/?tenant=x") == 404
