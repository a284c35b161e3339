"""`python -m tests.bench.reconcile`: mark P7, asking a provider that answers in 20 ms.

One interleaved run of rounds on one durable PostgreSQL: a bare 16-thread client that writes the same rows,
one worker process of ours, two of them. Every attempt is found and confirmed, has a run with a budget, and is
told to one destination; a slice is `--slice` attempts. Prints look-ups a second (min / median / max), the CPU
each costs in the process and in the database, and the two ratios.
"""

from __future__ import annotations

import os
import random
import sys
from datetime import timedelta

from tests.bench.rounds import Bench, compare

RATE_PER_S = 1_000
"""The most that can be configured."""


def _prepare(port: int, attempts: int) -> None:
    """So many attempts that nobody has heard from, due on another day."""
    from django.core.management import call_command
    from django.db import connection

    from ledger.models import Attempt, Provider
    from ledger.transactions import database_clock
    from tests.bench.work import WorkInDoubt
    from tests.support.provider import asking

    os.environ["CELERY_BROKER_URL"] = "memory://"  # takes every hint of a delivery, like one that is there
    call_command("migrate", verbosity=0)
    work = WorkInDoubt(random.Random(1))
    for made in work.fill(attempts + 100):
        print(f"\r{made} operations", end="", file=sys.stderr, flush=True)
    config = {**asking(f"http://127.0.0.1:{port}/messages", ("to", "subject")), "rate_per_s": RATE_PER_S}
    Provider.objects.create(tenant=work.cast.tenant, name="mail", adapter="http", config=config)
    Attempt.objects.update(next_check_at=database_clock() + timedelta(days=1))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _make_due(size: int) -> None:
    from ledger.models import Attempt
    from ledger.transactions import database_clock

    now = database_clock()
    later = Attempt.objects.filter(next_check_at__gt=now).order_by("pk").values("pk")[:size]
    assert Attempt.objects.filter(pk__in=later).update(next_check_at=now) == size


if __name__ == "__main__":
    compare(Bench(__doc__ or "", "tests.bench.reconciling", _prepare, _make_due))
