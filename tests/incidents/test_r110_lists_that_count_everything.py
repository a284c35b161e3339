"""R110: Lists take minutes because each page counts every row there is, and a late page reads all before it.

Kind: a page whose cost is that of everything that ever happened. A list reads what is open, by keyset: no
statement skips rows by their number, none counts what is finished, and page after page costs the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from review.queries import QueueFilters, Tab, queue
from tests.review.test_queue import queue_module
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db

OPEN, FINISHED, SIZE = 12, 40, 3
BIG = "ledger_(attempt|event|lookup|operation|delivery)"


@pytest.fixture
def people(db: None) -> Cast:
    return cast()


@pytest.fixture
def waiting(people: Cast, monkeypatch: pytest.MonkeyPatch) -> Cast:
    monkeypatch.setattr(queue_module, "PAGE_SIZE", SIZE)
    for _ in range(OPEN):
        make.for_a_person(people.key)
    return people


def asked(question: Callable[[], Any]) -> tuple[Any, list[str]]:
    with CaptureQueriesContext(connection) as captured:
        answer = question()
    return answer, [query["sql"] for query in captured]


def walked(people: Cast, tab: Tab) -> list[list[str]]:
    """The statements of each page, from the first to the last."""
    pages, cursor = [], ""
    while True:
        page, statements = asked(lambda: queue(people.viewer, QueueFilters(tab=tab, cursor=cursor)))  # noqa: B023
        pages.append(statements)
        cursor = page.next_cursor or ""
        if not cursor:
            return pages


def rows_read(sql: str) -> int:
    """How many rows the plan of this statement touched in tables of what happened."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}")
        found = cursor.fetchone()[0]
    return _rows((json.loads(found) if isinstance(found, str) else found)[0]["Plan"])


def _rows(node: dict[str, Any]) -> int:
    own = node["Actual Rows"] * node["Actual Loops"] if "Relation Name" in node else 0
    return int(own) + sum(_rows(child) for child in node.get("Plans", ()))


def test_every_page_asks_the_same_and_none_skips_rows(waiting: Cast) -> None:
    pages = walked(waiting, Tab.ALL)
    assert len(pages) == OPEN // SIZE
    assert len({len(statements) for statements in pages}) == 1
    assert [sql for statements in pages for sql in statements if " OFFSET " in sql] == []


def test_what_is_counted_is_open_or_of_one_day(waiting: Cast) -> None:
    counts = [sql for sql in walked(waiting, Tab.ALL)[0] if "COUNT(" in sql]
    assert counts
    for sql in counts:
        assert '"closed_at" IS NULL' in sql or '"closed_at" >=' in sql or "voided_at" in sql, sql
        assert not re.search(rf'COUNT\(\S*\).{{0,40}}FROM "{BIG}"', sql), sql


def test_what_is_finished_costs_the_first_page_nothing(waiting: Cast) -> None:
    """Each of its statements reads as many rows after a lot has happened as before."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")  # tables this small would be read whole
    page, statements = asked(lambda: queue(waiting.viewer, QueueFilters()))
    of_items = [sql for sql in statements if "ledger_reviewitem" in sql]
    before = [rows_read(sql) for sql in of_items]
    for _ in range(FINISHED):
        make.confirmed(waiting.key, make.TICKET)
    assert len(page.rows) == SIZE
    assert [rows_read(sql) for sql in of_items] == before


def test_there_is_no_list_of_everything_beside_the_desk(people: Cast) -> None:
    client = Client()
    client.force_login(people.superuser, backend="django.contrib.auth.backends.ModelBackend")
    assert client.get("/admin/").status_code == 404
