"""Tests that commit are emptied by TRUNCATE, which the ledger's tables refuse unless a setting allows it."""

import pytest
from django.db import connection
from pytest_django.plugin import DjangoDbBlocker


@pytest.fixture(scope="session", autouse=True)
def emptied_between_tests(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """Allow it in the test database, for every connection made from now on."""
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        name = connection.ops.quote_name(connection.settings_dict["NAME"])
        cursor.execute(f"ALTER DATABASE {name} SET ledger.allow_truncate = 'on'")
        connection.close()
