"""Being away, on the desk: said of oneself under one's permissions, of others by administrators."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from ledger.models import User
from ledger.transactions import database_clock
from review import ownership
from review.absences import away_in
from review.models import Absence
from tests.dashboard.conftest import SignIn, body_of
from tests.support import make
from tests.support.cast import Cast

WHY = {"why": "on holiday"}
AWAY, BACK = "/absence/acme/away/", "/absence/acme/back/"


def until(days: float = 3) -> dict[str, str]:
    return {"until": (database_clock() + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M"), **WHY}


def of(user: User, press: str = "") -> str:
    return f"/access/acme/{user.pk}/" + (f"{press}/" if press else "")


def test_a_person_goes_and_comes_back(people: Cast, signed_in: SignIn) -> None:
    item = make.item_of(make.for_a_person(people.key))
    ownership.assign(people.admin, item.pk, to="operator", why="yours")
    client = signed_in(people.operator)
    assert "You own 1 open item here" in body_of(client, "/access/me/")
    assert "Open items (1) stay yours" in body_of(client, AWAY)
    assert client.post(AWAY, until()).status_code == 303
    assert "You are away: rules give you nothing" in body_of(client, "/access/me/")
    assert set(away_in(people.tenant)) == {people.operator.pk}
    for shown in ("/access/", of(people.operator)):
        assert "away" in body_of(signed_in(people.admin), shown).lower()
    assert "Open a ticket" in body_of(client, "/review/?tab=all&tenant=acme&owner=me")
    assert client.post(BACK, WHY).status_code == 303
    assert client.post(BACK, WHY).status_code == 422
    assert client.get("/absence/acme/nowhere/").status_code == 404
    assert away_in(people.tenant) == {}


def test_an_administrator_says_it_of_others(people: Cast, signed_in: SignIn) -> None:
    client = signed_in(people.admin)
    assert client.post(of(people.operator, "away"), until()).status_code == 303
    body = body_of(client, of(people.operator))
    assert "Away: rules give them nothing" in body
    assert "Said by admin: “on holiday”" in body
    assert client.post(of(people.operator, "away"), until(5)).status_code == 303
    assert client.post(of(people.operator, "back"), WHY).status_code == 303
    assert "Away: rules" not in body_of(client, of(people.operator))
    assert "viewer decides no work in Acme" in body_of(client, of(people.viewer))
    assert client.post(of(people.viewer, "away"), until()).status_code == 409


@pytest.mark.parametrize("who", ["viewer", "second_operator", "approver", "auditor"])
def test_nobody_else_does(people: Cast, signed_in: SignIn, who: str) -> None:
    answer = signed_in(getattr(people, who)).post(of(people.operator, "away"), until())
    assert answer.status_code == 403
    assert b"on holiday" in answer.content
    assert not Absence.objects.exists()


def test_strangers_and_the_anonymous_say_nothing(people: Cast, signed_in: SignIn) -> None:
    for stranger in (people.stranger, people.superuser):
        client = signed_in(stranger)
        assert client.get(AWAY).status_code == client.post(AWAY, until()).status_code == 404
        assert client.post(of(people.operator, "away"), until()).status_code == 404
    assert Client().post(AWAY, until())["Location"].startswith("/sign-in/")
    assert not Absence.objects.exists()


@pytest.mark.parametrize("typed", [{"until": "", **WHY}, {"until": "soon", **WHY}, {"why": ""}], ids=str)
def test_what_is_typed_wrong_is_said(people: Cast, signed_in: SignIn, typed: dict[str, str]) -> None:
    answer = signed_in(people.operator).post(AWAY, typed)
    assert answer.status_code == 422
    assert b'class="errors"' in answer.content


@pytest.mark.parametrize("days", [-1, 400])
def test_an_end_that_cannot_be_is_said(people: Cast, signed_in: SignIn, days: int) -> None:
    answer = signed_in(people.operator).post(AWAY, until(days))
    assert answer.status_code == 422
    assert b"An absence ends in the future" in answer.content
    assert not Absence.objects.exists()


def test_who_decides_nothing_is_told(people: Cast, signed_in: SignIn) -> None:
    answer = signed_in(people.viewer).post(AWAY, until())
    assert answer.status_code == 422
    assert b"decides no work" in answer.content
