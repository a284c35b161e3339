"""Hostile addresses of pages, and a hostile user name: an answer, never a 500."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.support.cast import cast

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "address",
    [
        "/review/%00/",
        "/review/rev_%00/approve/",
        "/review/x%1f/changed/",
        "/review/?tool=%00",
        "/review/?tenant=a%00b",
        "/review/strip/?since=2026-01-01T00:00:00Z&tool=%0a",
        "/sign-in/?next=%00",
        "/?%00=1",
    ],
)
def test_control_characters_in_an_address_are_refused(client: Client, address: str) -> None:
    client.force_login(cast().operator, backend="django.contrib.auth.backends.ModelBackend")
    for answer in (client.get(address), client.post(address, {"why": "x"})):
        assert answer.status_code == 400
        assert b"<h1" in answer.content


def test_an_endless_user_name_is_a_wrong_one(client: Client) -> None:
    answer = client.post("/sign-in/", {"username": "x" * 5_000, "password": "y"})
    assert answer.status_code == 200
    assert "_auth_user_id" not in client.session
