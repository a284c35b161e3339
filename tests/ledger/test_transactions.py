"""What a transaction promises where its connection does not last."""

import select

import pytest
from django.db import InternalError, OperationalError, connection

from ledger.transactions import durable

pytestmark = pytest.mark.django_db(transaction=True)


def ask() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def hold_for_too_long() -> None:
    """What a process does that was stopped in the middle of a transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = '50ms'")
    ended, _, _ = select.select([connection.connection.pgconn.socket], [], [], 10)
    assert ended, "the server did not end the connection"
    ask()


def test_a_transaction_held_for_too_long_is_a_database_that_did_not_answer() -> None:
    with pytest.raises(OperationalError):
        durable(hold_for_too_long)
    durable(ask)


def test_another_error_of_the_database_passes_as_it_is() -> None:
    def go_on_after_an_error() -> None:
        with pytest.raises(Exception, match="nowhere"), connection.cursor() as cursor:
            cursor.execute("SELECT * FROM nowhere")
        with connection.cursor() as cursor:
            connection.needs_rollback = False
            cursor.execute("SELECT 1")

    with pytest.raises(InternalError):
        durable(go_on_after_an_error)
    durable(ask)
