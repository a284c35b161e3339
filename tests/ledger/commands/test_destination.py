"""Pause, resume and rotate by command: as on the page, refused where nothing would change."""

from __future__ import annotations

import pytest

from ledger.deliveries.secrets import live_secrets
from ledger.models import Destination, DestinationChange
from ledger.rules.webhooks import secret_text
from ledger.transactions import database_clock
from tests.ledger.commands.support import Ran, run
from tests.ledger.deliveries.helping import destination
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def people() -> Cast:
    return cast()


@pytest.fixture
def books(people: Cast) -> Destination:
    return destination(people, "https://books.example/")[0]


def asked(what: str, *more: str, name: str = "books") -> Ran:
    return run("destination", what, name, "--tenant", "acme", *more)


def test_paused_and_resumed_with_a_reason(books: Destination) -> None:
    assert asked("pause", "--why", "it moves").exit == 0
    books.refresh_from_db()
    assert (books.paused_at is not None, books.paused_because) == (True, "person")
    assert asked("resume").exit == 0
    books.refresh_from_db()
    assert books.paused_at is None
    changes = DestinationChange.objects.filter(destination=books).order_by("pk")
    assert [(line.kind, line.why) for line in changes] == [
        ("added", ""), ("paused", "it moves"), ("resumed", "")
    ]  # fmt: skip


def test_what_changes_nothing_is_a_conflict(books: Destination) -> None:
    assert asked("resume").exit == 4
    assert asked("pause").exit == 0
    assert asked("pause").exit == 4
    assert DestinationChange.objects.filter(destination=books, kind="paused").count() == 1


def test_a_new_secret_signs_beside_the_old_one_for_the_overlap(books: Destination) -> None:
    before = live_secrets(books.pk, now=database_clock())
    made = asked("rotate", "--overlap-h", "2").data
    after = live_secrets(books.pk, now=database_clock())
    assert after[1:] == before
    assert secret_text(after[0]) == made["secret"]
    assert made["overlap_s"] == 7200


@pytest.mark.parametrize("hours", ["-1", "nan", "721"])
def test_an_overlap_has_an_end(books: Destination, hours: str) -> None:
    assert asked("rotate", f"--overlap-h={hours}").exit == 2


def test_one_that_is_not_there(books: Destination) -> None:
    assert asked("pause", name="shelves").exit == 2
    assert run("destination", "pause", "books", "--tenant", "globex").exit == 2
