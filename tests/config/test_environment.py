"""DATABASE_URL as people write it."""

import pytest

from config.environment import database_at


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "postgresql://ann:p%40ss@db.example:6543/ledger?sslmode=require",
            {"HOST": "db.example", "PORT": "6543", "USER": "ann", "PASSWORD": "p@ss", "NAME": "ledger",
             "OPTIONS": {"sslmode": "require"}},
        ),
        ("postgres://localhost/x", {"HOST": "localhost", "PORT": "", "USER": "", "NAME": "x", "OPTIONS": {}}),
        ("postgresql:///ledger?host=/run/pg&user=bob", {"HOST": "/run/pg", "USER": "bob", "NAME": "ledger"}),
        ("postgresql://bob@%2Frun%2FPg/ledger", {"HOST": "/run/Pg", "USER": "bob", "NAME": "ledger"}),
        ("postgresql://bob@[::1]:5432/ledger", {"HOST": "::1", "PORT": "5432"}),
    ],
)  # fmt: skip
def test_parts_of_a_url(url: str, expected: dict[str, object]) -> None:
    parts = database_at(url)
    assert {name: parts[name] for name in expected} == expected


@pytest.mark.parametrize(
    "url", ["mysql://localhost/x", "postgresql://localhost", "postgresql://localhost/", "x"]
)
def test_a_url_that_names_no_postgres_database_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="DATABASE_URL must look like"):
        database_at(url)
