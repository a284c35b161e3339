"""One healthy ledger per module, built once; each test breaks it inside a savepoint that is undone."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from django.db import connection, transaction
from pytest_django.plugin import DjangoDbBlocker

from tests.ledger.fsck.many_states import ManyStates

Plant = Callable[[str], AbstractContextManager[None]]


@pytest.fixture(scope="module")
def many_states(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[ManyStates]:
    """The ledger of this module, in a transaction that is never committed."""
    with django_db_blocker.unblock(), _test_transaction():
        made = ManyStates()
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        yield made


@pytest.fixture
def plant(many_states: ManyStates) -> Plant:
    """Break the ledger past every trigger of its own, for the length of a block."""

    @contextmanager
    def planted(sql: str) -> Iterator[None]:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL session_replication_role = replica")
                cursor.execute(sql, many_states.ids)
            yield
            transaction.set_rollback(True)

    return planted


@contextmanager
def _test_transaction() -> Iterator[None]:
    block: Any = transaction.atomic()
    block._from_testcase = True  # verbs insist on a transaction of their own inside it
    with block:
        yield
        transaction.set_rollback(True)
