"""Signing in: returns where one was, is throttled, leaves by POST only."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.test import Client

from tests.dashboard.conftest import SignIn
from tests.support.cast import Cast


def sign_in(client: Client, username: str, password: str, address: str = "") -> tuple[int, str]:
    typed = {"username": username, "password": password, "next": address}
    answer = client.post("/sign-in/", typed)
    return answer.status_code, answer.headers.get("Location", "")


def test_signing_in_leads_back(people: Cast) -> None:
    assert sign_in(Client(), "operator", "operator-secret", "/review/?tab=mine") == (303, "/review/?tab=mine")


@pytest.mark.parametrize("address", ["https://evil.example/", "//evil.example/", "javascript:alert(1)"])
def test_signing_in_never_leads_elsewhere(people: Cast, address: str) -> None:
    assert sign_in(Client(), "operator", "operator-secret", address) == (303, "/")


def test_a_wrong_password_says_no_more_than_that(people: Cast) -> None:
    wrong = Client().post("/sign-in/", {"username": "operator", "password": "wrong"})
    nobody = Client().post("/sign-in/", {"username": "nobody", "password": "wrong"})
    assert b"do not match" in wrong.content
    assert b"do not match" in nobody.content


def test_somebody_switched_off_cannot_sign_in(people: Cast) -> None:
    assert sign_in(Client(), "inactive", "inactive-secret")[0] == 200


def test_guessing_is_throttled(people: Cast) -> None:
    client = Client()
    for _ in range(settings.AXES_FAILURE_LIMIT):
        sign_in(client, "operator", "wrong")
    status, _ = sign_in(client, "operator", "operator-secret")
    assert status == 429


def test_passwords_may_be_pasted_and_remembered() -> None:
    body = Client().get("/sign-in/").content.decode()
    assert 'autocomplete="current-password"' in body
    assert "onpaste" not in body


def test_signing_out_takes_a_press(people: Cast, signed_in: SignIn) -> None:
    client = signed_in(people.operator)
    assert client.get("/sign-out/").status_code == 405
    assert client.get("/review/").status_code == 200
    assert client.post("/sign-out/").status_code == 303
    assert client.get("/review/").status_code == 303


def test_an_expired_session_in_a_fragment_leads_to_the_whole_sign_in_page(people: Cast) -> None:
    answer = Client().get(
        "/review/rev_1/reject/",
        headers={"HX-Request": "true", "HX-Current-URL": "http://testserver/review/rev_1/?tab=mine"},
    )
    assert answer.status_code == 200
    assert answer["HX-Redirect"] == "/sign-in/?next=%2Freview%2Frev_1%2F%3Ftab%3Dmine"
