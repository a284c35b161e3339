"""Whatever happens in whatever order, every invariant holds afterwards."""

import pytest
from django.db import connection

from ledger.queries.invariants import findings
from tests.ledger.fsck.random_work import RandomWork
from tests.support.cast import cast

pytestmark = pytest.mark.django_db

STEPS = 80


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_invariant_holds_after_any_work(seed: int) -> None:
    work = RandomWork(cast(), seed)
    for _ in range(STEPS):
        work.step()
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")
    assert list(findings()) == [], "\n".join(work.done)
