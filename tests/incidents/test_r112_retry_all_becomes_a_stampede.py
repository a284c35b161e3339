"""R112: Looking at everything again at once becomes a stampede.

Kind: work released faster than the provider takes it. Whatever makes many attempts due, and however many
processes work on them, one clock for each provider spaces the requests, a Retry-After is a floor for all of
them, a 429 decides nothing, and the other tenants keep their share. domain.md says the same.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ledger import lifecycle
from ledger.models import Attempt, LookUp, ReviewItem
from ledger.reconciliation import reconcile_once
from ledger.transactions import durable
from tests.incidents.awaiting import asked_at, lost, provider_behind_a_line, states, unknown
from tests.support import make
from tests.support.beside import start_command
from tests.support.cast import Cast, cast
from tests.support.processes import wait_until
from tests.support.proxy import Honest, Reply, Request

RATE_PER_S, MANY, PROCESSES = 5, 30, 3
WITHIN_S = 90.0

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


class Noting:
    """A provider that notes when it was asked, and answers 429 to the request of this number."""

    def __init__(self, *, refuses: int = -1, retry_after: int = 0) -> None:
        self.at: list[float] = []
        self._refuses, self._retry_after = refuses, retry_after
        self._lock = threading.Lock()

    def __call__(self, _: Request, ask: Honest) -> Reply | None:
        with self._lock:
            number = len(self.at)
            self.at.append(time.monotonic())
        if number == self._refuses:
            return Reply(429, b"{}", {"Retry-After": str(self._retry_after)})
        return ask()

    @property
    def busiest_second(self) -> int:
        return max(sum(1 for at in self.at if 0 <= at - first < 1) for first in self.at)


@contextmanager
def reconcilers() -> Iterator[None]:
    """Several processes that look for due work all the time."""
    running = [start_command("reconcile") for _ in range(PROCESSES)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def look_again_at_everything(people: Cast) -> None:
    for item in ReviewItem.objects.filter(tenant=people.tenant, closed_at=None):
        durable(lambda item=item: lifecycle.recheck(item_id=item.pk, by=people.operator, why="all of them"))  # type: ignore[misc]


def test_many_made_due_at_once_are_asked_about_at_the_providers_rate(tmp_path: Path) -> None:
    people, noting = cast(), Noting(refuses=5, retry_after=3)
    with provider_behind_a_line(tmp_path) as (provider, line):
        asked_at(line.url, people.tenant, rate_per_s=RATE_PER_S)
        lost(people.key, provider, MANY)
        look_again_at_everything(people)
        line.fault = noting
        with reconcilers():
            wait_until(lambda: not unknown(people.tenant), within_s=WITHIN_S, what="all settled")
    assert states(people.tenant) == {"OUTCOME_CONFIRMED"}
    # each process may be late with one turn it has taken
    assert noting.busiest_second <= RATE_PER_S + 1 + PROCESSES
    after_the_429 = [at - noting.at[5] for at in noting.at[6:] if at - noting.at[5] > 0.5]
    assert min(after_the_429) >= 2.5, "Retry-After is a floor for every process"
    assert Attempt.objects.filter(checks__gt=0).count() == 0, "a 429 is no look-up's result"
    assert provider_was_asked_for_each_once(noting)


def provider_was_asked_for_each_once(noting: Noting) -> bool:
    """Beside the refused one and what was under way with it."""
    return MANY < len(noting.at) <= MANY + 1 + PROCESSES


def test_another_tenant_keeps_its_share(tmp_path: Path) -> None:
    """Its few attempts are due last, behind a long queue for a slow provider."""
    people = cast()
    theirs = make.key(make.agent(people.other_tenant, people.stranger))
    with (
        provider_behind_a_line(tmp_path / "slow") as (slow, slow_line),
        provider_behind_a_line(tmp_path / "quick") as (quick, quick_line),
    ):
        asked_at(slow_line.url, people.tenant, rate_per_s=2)
        asked_at(quick_line.url, people.other_tenant)
        lost(people.key, slow, 12)
        lost(theirs, quick, 3)
        passes = 0
        while unknown(people.other_tenant):
            reconcile_once(at_most=6)
            passes += 1
        assert unknown(people.tenant) >= 12 - 2 * 6, "they did not wait for the others' queue"
        assert passes <= 2
        assert LookUp.objects.filter(tenant=people.tenant).exists()
