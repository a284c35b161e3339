"""What the provider answered, only the sender knows: it is recorded, or at least said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection

from ledger.models import Attempt
from ledger.queries.invariants import findings
from ledger.reconciliation import resend
from ledger.transactions import Busy, durable
from tests.ledger.reconciliation.desk import Desk, between, events
from tests.support import make
from tests.support.beside import database_url_of_tests
from tests.support.cast import cast
from tests.support.provider import ProviderProcess

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def desk(transactional_db: None, provider: ProviderProcess) -> Iterator[Desk]:
    yield Desk(cast(), provider).prepare()
    assert list(findings()) == []


def end_the_session() -> None:
    server = connection.cursor().connection.info.backend_pid
    with psycopg.connect(database_url_of_tests()) as somebody:
        somebody.execute("SELECT pg_terminate_backend(%s)", [server])


def once_at(monkeypatch: pytest.MonkeyPatch, point: str, happens: Callable[[], None]) -> None:
    """Let it happen while the sender is at this point for the first time."""
    left = [happens]
    between(monkeypatch, point, lambda: left and left.pop()())


def test_a_database_that_was_away_for_a_moment_loses_no_receipt(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt, following = desk.posted(), desk.posted()
    once_at(monkeypatch, "sender.sent", end_the_session)
    assert desk.sends().sent == 2
    attempt = make.fresh(attempt)
    assert (attempt.state, attempt.confirmed_by) == ("OUTCOME_CONFIRMED", "agent")
    assert attempt.result_ref.startswith("re_")
    assert make.fresh(following).state == "OUTCOME_CONFIRMED"
    assert (desk.effects(attempt), attempt.lookups.count()) == (1, 0)


def test_a_session_that_ends_as_it_commits_records_it_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = desk.posted()
    once_at(monkeypatch, "sender.before_commit", end_the_session)
    desk.sends()
    assert make.fresh(attempt).state == "OUTCOME_CONFIRMED"
    assert len(events(attempt, "attempt.outcome_reported")) == 1


def test_a_commit_whose_answer_was_lost_is_not_recorded_twice(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = desk.posted()
    lost: list[Attempt] = []

    def losing(work: Callable[[], Any]) -> Any:
        done = durable(work)
        if make.fresh(attempt).state == "OUTCOME_CONFIRMED" and not lost:
            lost.append(attempt)
            raise OperationalError("planned: the connection was lost while the commit was answered")
        return done

    monkeypatch.setattr(resend, "durable", losing)
    assert desk.sends().outcomes == {"OUTCOME_CONFIRMED": 1}
    assert len(lost) == len(events(attempt, "attempt.outcome_reported")) == 1


@pytest.mark.parametrize("trouble", [OperationalError, Busy])
def test_what_cannot_be_recorded_is_said(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, trouble: type[Exception]
) -> None:
    attempt = desk.posted(args={"amount": 4_711, "currency": "EUR", "customer": "cus_secret"})
    tries = []

    def away(**_: object) -> None:
        tries.append(trouble("planned"))
        raise tries[-1]

    monkeypatch.setattr(resend, "record_own_outcome", away)
    monkeypatch.setattr(resend, "RECORD_AGAIN_S", 0.0)
    monkeypatch.setattr(resend, "RECORD_WITHIN_S", 0.05)
    if trouble is Busy:
        desk.sends()
    else:
        with pytest.raises(OperationalError):
            desk.sends()
    assert len(tries) > 1
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert str(attempt.pk) in said
    assert "reference 're_" in said
    assert "cus_secret" not in said
    assert make.fresh(attempt).state == "DISPATCHED", "its lease runs out, and the provider is asked"
