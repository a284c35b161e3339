"""A password is set by the code of a link, by whoever holds it, once; and the link is shown once."""

from __future__ import annotations

import re

import pytest
from django.conf import settings
from django.test import Client

from ledger.models import AccessChange, User
from review.access import AccessRefused
from review.accounts import change_password, make_link
from review.models import PasswordLink
from tests.dashboard.conftest import SignIn, body_of
from tests.support.cast import Cast

WHY = {"why": "I am sure"}
PASSWORD = "a-long-and-private-phrase"
NEW = {"username": "nora", "display_name": "Nora Nil", "role": "viewer", **WHY}


def link_in(body: str) -> tuple[str, str]:
    """The address of the link that is shown, and its code."""
    ((address, code),) = set(re.findall(r"<code>(http://\S+?)#([\w-]{43})</code>", body))
    return address, code


def new_link(client: Client, path: str = "/access/acme/add/", typed: dict[str, str] | None = None) -> str:
    answer = client.post(path, NEW if typed is None else typed)
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "no-store, private"
    return link_in(answer.content.decode())[1]


def set_password(code: str, password: str = PASSWORD, again: str | None = None) -> tuple[int, str]:
    typed = {"code": code, "password": password, "again": password if again is None else again}
    answer = Client().post("/set-password/", typed)
    body = answer.content.decode()
    assert password not in body
    return answer.status_code, answer.headers.get("Location", body)


def test_a_new_person_sets_a_password_and_signs_in(people: Cast, signed_in: SignIn) -> None:
    admin = signed_in(people.admin)
    answer = admin.post("/access/acme/add/", NEW)
    address, code = link_in(answer.content.decode())
    assert address == "http://testserver/set-password/"
    nora = User.objects.get(username="nora")
    before = body_of(admin, f"/access/acme/{nora.pk}/")
    assert code not in before
    for shown in ("Nora Nil", "Has set no password yet", "made by admin, is open"):
        assert shown in before

    assert set_password(code) == (303, "/sign-in/?set")
    person = Client()
    assert b"Your password is set" in person.get("/sign-in/?set").content
    assert person.post("/sign-in/", {"username": "nora", "password": PASSWORD}).status_code == 303
    assert "You are viewer here" in body_of(person, "/access/me/")
    assert person.get("/access/").status_code == 403
    after = body_of(admin, f"/access/acme/{nora.pk}/")
    assert "Password set" in after
    assert "Has set no password yet" not in after


def test_a_link_opens_by_post_alone_and_once(people: Cast, signed_in: SignIn) -> None:
    code = new_link(signed_in(people.admin))
    for _ in range(2):  # a browser that looks ahead uses nothing up
        assert Client().get("/set-password/").status_code == 200
    assert set_password(code)[0] == 303
    status, body = set_password(code, "another-long-phrase")
    assert status == 422
    assert "was used, replaced or has ended" in body


@pytest.mark.parametrize("code", ["", "nonsense", "x" * 101, "a\x00b"])
def test_a_wrong_code_says_nothing_of_anybody(people: Cast, signed_in: SignIn, code: str) -> None:
    new_link(signed_in(people.admin))
    status, body = set_password(code)
    assert status == 422
    assert "nora" not in body.lower()
    assert PasswordLink.objects.count() == 1


@pytest.mark.parametrize(
    ("password", "again"), [("short-1", None), (PASSWORD, "another"), ("Nora.Nil.1", None)]
)
def test_a_password_that_is_refused_leaves_the_link_good(
    people: Cast, signed_in: SignIn, password: str, again: str | None
) -> None:
    code = new_link(signed_in(people.admin))
    status, body = set_password(code, password, again)
    assert status == 422
    assert 'class="errors"' in body
    assert set_password(code)[0] == 303


def test_every_session_ends_with_the_password_before(people: Cast, signed_in: SignIn) -> None:
    elsewhere = signed_in(people.operator)
    code = new_link(signed_in(people.admin), f"/access/acme/{people.operator.pk}/new-link/", WHY)
    assert elsewhere.get("/review/").status_code == 200
    assert set_password(code)[0] == 303
    assert elsewhere.get("/review/").status_code == 303


def test_a_press_repeated_by_the_browser_makes_no_second_account(people: Cast, signed_in: SignIn) -> None:
    admin = signed_in(people.admin)
    new_link(admin)
    again = admin.post("/access/acme/add/", NEW)
    assert again.status_code == 422
    assert b"is taken" in again.content
    assert User.objects.filter(username="nora").count() == 1


def test_why_there_is_no_link_stands_on_the_button(people: Cast, signed_in: SignIn) -> None:
    admin = signed_in(people.admin)
    assert "Nobody makes a link for themselves" in body_of(admin, f"/access/acme/{people.admin.pk}/")
    answer = admin.post(f"/access/acme/{people.inactive.pk}/new-link/", WHY)
    assert answer.status_code == 409
    assert b"inactive is switched off" in answer.content
    assert not PasswordLink.objects.exists()


def change_own(
    client: Client, current: str, password: str = PASSWORD, again: str | None = None
) -> tuple[int, str]:
    typed = {"current": current, "password": password, "again": password if again is None else again}
    answer = client.post("/access/me/password/", typed)
    body = answer.content.decode()
    assert password not in body
    return answer.status_code, answer.headers.get("Location", body)


def signing_in(username: str, password: str) -> Client | None:
    client = Client()
    answer = client.post("/sign-in/", {"username": username, "password": password})
    return client if answer.status_code == 303 else None


def test_somebody_changes_their_own_password_and_stays_signed_in_here_alone(people: Cast) -> None:
    here, elsewhere = (signing_in("operator", "operator-secret") for _ in range(2))
    assert here is not None
    assert elsewhere is not None
    link = make_link(people.admin, "acme", people.operator.pk, why="they asked")
    assert "Change your password" in body_of(here, "/access/me/")
    assert change_own(here, "operator-secret") == (303, "/access/me/")
    assert here.get("/access/me/").status_code == 200
    assert elsewhere.get("/access/me/").status_code == 303
    assert signing_in("operator", "operator-secret") is None
    assert signing_in("operator", PASSWORD) is not None
    assert set_password(link.code)[0] == 422
    line = AccessChange.objects.latest("pk")
    assert (line.kind, line.by, line.person) == ("password_set", people.operator, people.operator)


@pytest.mark.parametrize(
    ("current", "password", "again", "words"),
    [
        ("wrong", PASSWORD, None, "This is not your password."),
        ("operator-secret", "a1b2", None, "too short"),
        ("operator-secret", PASSWORD, "another-long-phrase", "differ"),
        ("operator-secret", "a\x00" + PASSWORD, None, "Null characters"),
    ],
)
def test_a_password_that_cannot_be_taken_changes_nothing(
    people: Cast, current: str, password: str, again: str | None, words: str
) -> None:
    client = signing_in("operator", "operator-secret")
    assert client is not None
    status, body = change_own(client, current, password, again)
    assert (status, words in body) == (422, True)
    assert signing_in("operator", "operator-secret") is not None
    assert not AccessChange.objects.filter(kind="password_set").exists()


def test_a_password_that_was_changed_meanwhile_is_not_written_over(people: Cast) -> None:
    read = User.objects.get(pk=people.operator.pk)
    change_password(people.operator, PASSWORD)
    with pytest.raises(AccessRefused, match="meanwhile"):
        change_password(read, "another-long-phrase")
    assert signing_in("operator", PASSWORD) is not None


def test_guesses_at_ones_own_password_are_slowed_down_as_at_a_sign_in(
    people: Cast, signed_in: SignIn
) -> None:
    client = signed_in(people.operator)
    for _ in range(settings.AXES_FAILURE_LIMIT):
        change_own(client, "a guess")
    assert change_own(client, "operator-secret")[0] == 429
    assert not AccessChange.objects.filter(kind="password_set").exists()
