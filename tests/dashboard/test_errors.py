"""What went wrong is said on a page: what failed, whether anything changed, the request id."""

from __future__ import annotations

from typing import NoReturn

import pytest
from django.test import Client
from django.utils.html import escape

from ledger.ingest.problems import PROBLEMS
from ledger.transactions import Busy
from tests.dashboard.conftest import SignIn
from tests.support.cast import Cast


@pytest.mark.parametrize("slug", PROBLEMS)
def test_the_type_of_every_problem_is_a_page(db: None, slug: str) -> None:
    answer = Client().get(f"/problems/{slug}")
    assert answer.status_code == 200
    assert escape(PROBLEMS[slug].mend) in answer.content.decode()


@pytest.mark.parametrize("path", ["/problems/no-such", "/nothing", "/review/a/b/c/", "/%3Cscript%3E/"])
def test_an_unknown_address_is_a_page(db: None, path: str) -> None:
    answer = Client().get(path)
    assert answer.status_code == 404
    assert b"There is nothing here for you" in answer.content
    assert b"<script>" not in answer.content


def test_an_unknown_host_is_refused(db: None) -> None:
    answer = Client().get("/sign-in/", headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert b"cannot be understood" in answer.content


def test_busy_rows_say_that_nothing_changed(
    people: Cast, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.views.queue.queue", raising(Busy("locked")))
    answer = signed_in(people.operator).get("/review/")
    assert answer.status_code == 503
    assert answer["Retry-After"] == "2"
    assert b"Nothing was changed" in answer.content


def test_a_fault_of_ours_names_the_request(
    people: Cast, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.views.queue.queue", raising(RuntimeError("secret detail")))
    client = signed_in(people.operator)
    client.raise_request_exception = False
    answer = client.get("/review/")
    assert answer.status_code == 500
    assert answer["X-Request-Id"] in answer.content.decode()
    assert b"secret detail" not in answer.content


def raising(error: Exception) -> object:
    def raise_it(*_args: object) -> NoReturn:
        raise error

    return raise_it
