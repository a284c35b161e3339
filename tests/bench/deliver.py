"""`python -m tests.bench.deliver`: mark P7, delivering to consumers that answer in 20 ms.

One interleaved run of rounds on one durable PostgreSQL: a bare 16-thread client that writes the same rows,
one worker process of ours, two of them. Eight destinations with their usual places; a slice is `--slice`
deliveries. Prints deliveries a second (min / median / max), the CPU each costs in the process and in the
database, and the two ratios.
"""

from __future__ import annotations

import random
import sys
from functools import partial

from tests.bench.rounds import Bench, compare

DESTINATIONS = 32
"""With four places each, more than two workers have: else their limits, and no worker, would be measured."""


def _prepare(port: int, deliveries: int) -> None:
    """So many operations that were settled and told to nobody yet, spread over the destinations."""
    from django.core.management import call_command
    from django.db import connection, transaction

    from ledger.deliveries import add_destination
    from ledger.events import SYSTEM
    from ledger.models import Delivery
    from ledger.transactions import database_clock, durable
    from tests.bench.work import Work

    call_command("migrate", verbosity=0)
    work = Work(random.Random(1))
    for made in work.fill(int(deliveries * 1.2) + 100):
        print(f"\r{made} operations", end="", file=sys.stderr, flush=True)
    tenant_id, url = work.cast.tenant.pk, f"http://127.0.0.1:{port}/hooks"
    for number in range(DESTINATIONS):
        add = partial(add_destination, tenant_id=tenant_id, url=url, ack="response", actor=SYSTEM)
        durable(partial(add, name=f"bench-{number}"))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(_SPREAD, [DESTINATIONS])
        cursor.execute("ANALYZE")
    assert Delivery.objects.filter(next_at__gt=database_clock()).count() >= deliveries


_SPREAD = """
    UPDATE ledger_delivery delivery SET destination_id = chosen.id, next_at = now() + interval '1 day'
    FROM (
        SELECT id, row_number() OVER (ORDER BY id) AS place FROM ledger_destination
        WHERE name LIKE 'bench-%%'
    ) chosen, (
        SELECT id, row_number() OVER (ORDER BY id) AS place FROM ledger_delivery WHERE state = 'PENDING'
    ) waiting
    WHERE waiting.id = delivery.id AND waiting.place %% %s + 1 = chosen.place
"""


def _make_due(size: int) -> None:
    from ledger.models import Delivery
    from ledger.transactions import database_clock

    now = database_clock()
    later = Delivery.objects.filter(next_at__gt=now).order_by("pk").values("pk")[:size]
    assert Delivery.objects.filter(pk__in=later).update(next_at=now) == size


if __name__ == "__main__":
    compare(Bench(__doc__ or "", "tests.bench.delivering", _prepare, _make_due))
