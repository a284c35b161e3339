"""The cast, and browsers without a browser for them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from ledger.models import Destination, User
from tests.support import told
from tests.support.cast import Cast, cast

SignIn = Callable[[User], Client]


def body_of(client: Client, path: str) -> str:
    """A page that is there, its white space folded."""
    answer = client.get(path)
    assert answer.status_code == 200, path
    return " ".join(answer.content.decode().split())


@pytest.fixture
def people(db: None) -> Cast:
    return cast()


@pytest.fixture
def signed_in() -> SignIn:
    """A client in which this person has signed in."""

    def sign_in(user: User) -> Client:
        client = Client()
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        return client

    return sign_in


@pytest.fixture
def destination(people: Cast) -> Destination:
    return told.destination(people.tenant)
