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

import pytest

from ledger import lifecycle
from ledger.models import Attempt, LookUp, Operation, ReviewItem, Tenant
from ledger.reconciliation import reconcile_once
from ledger.rules.keys import correlation_id
from ledger.transactions import durable
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.awaiting import lost, states, the_other_tenant_asks, unknown
from tests.incidents.helping import asked_through_a_line, publish, query_of
from tests.incidents.scene import OWN, Scene
from tests.support.beside import start_command
from tests.support.cast import Cast
from tests.support.processes import wait_until
from tests.support.proxy import Honest, Proxy, Reply, Request

RATE_PER_S, SENDS_PER_S, MANY, FEW, PROCESSES = 5, 1.5, 30, 3, 3
WITHIN_S = 90.0

pytestmark = pytest.mark.slow


class Noting:
    """A provider that notes when it was asked, and answers 429 to the request of this number."""

    def __init__(self, *, refuses: int = -1, retry_after: int = 0) -> None:
        self.at: list[float] = []
        self.marks: list[str] = []
        self._refuses, self._retry_after = refuses, retry_after
        self._lock = threading.Lock()

    def __call__(self, request: Request, ask: Honest) -> Reply | None:
        with self._lock:
            number = len(self.at)
            self.at.append(time.monotonic())
            self.marks.append(query_of(request).get("correlation_id", ""))
        if number == self._refuses:
            return Reply(429, b"{}", {"Retry-After": str(self._retry_after)})
        return ask()

    @property
    def kept_to_the_rate(self) -> bool:
        """In every second; each process may be late with one turn it has taken."""
        busiest = max(sum(1 for at in self.at if 0 <= at - first < 1) for first in self.at)
        return busiest <= RATE_PER_S + 1 + PROCESSES

    def last_about(self, of: Tenant) -> int:
        """The number of the last request that asked about this tenant's work."""
        keys = Operation.objects.filter(tenant=of).values_list("operation_key", flat=True)
        mine = {correlation_id(str(of.pk), key) for key in keys}
        return max(number for number, mark in enumerate(self.marks) if mark in mine)


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


def test_many_made_due_at_once_are_asked_about_at_the_providers_rate(scene: Scene) -> None:
    people, noting = scene.people, Noting(refuses=5, retry_after=3)
    lost(scene, MANY)
    with asked_through_a_line(scene, rate_per_s=RATE_PER_S) as line:
        look_again_at_everything(people)
        line.fault = noting
        with reconcilers():
            wait_until(lambda: not unknown(people.tenant), within_s=WITHIN_S, what="all settled")
    assert states(people.tenant) == {"OUTCOME_CONFIRMED"}
    assert noting.kept_to_the_rate
    after_the_429 = [at - noting.at[5] for at in noting.at[6:] if at - noting.at[5] > 0.5]
    assert min(after_the_429) >= 2.5, "Retry-After is a floor for every process"
    assert Attempt.objects.filter(checks__gt=0).count() == 0, "a 429 is no look-up's result"
    assert provider_was_asked_for_each_once(noting)
    nothing_else_went_wrong(scene)


def provider_was_asked_for_each_once(noting: Noting) -> bool:
    """Beside the refused one and what was under way with it."""
    return MANY < len(noting.at) <= MANY + 1 + PROCESSES


def test_many_approved_at_once_are_sent_at_the_providers_rate(scene: Scene) -> None:
    """By the ledger's own senders, each once. So seldom that no machine is too slow to send more often."""
    publish(scene, {OWN: {"review": "always", "approvals": 1}})
    noting = Noting()
    with asked_through_a_line(scene, OWN, rate_per_s=SENDS_PER_S) as line:
        for held in [scene.recorded(f"own:{number}", OWN) for number in range(MANY)]:
            scene.approve(held)
        line.fault = noting
        with reconcilers():
            wait_until(lambda: all_sent(scene), within_s=WITHIN_S, what="all sent")
    assert noting.at[-1] - noting.at[0] >= (MANY - 1 - PROCESSES) / SENDS_PER_S
    assert [request.method for request in line.requests] == ["POST"] * MANY
    assert [scene.effects(f"own:{number}") for number in range(MANY)] == [1] * MANY
    nothing_else_went_wrong(scene)


def all_sent(scene: Scene) -> bool:
    return Attempt.objects.filter(tenant=scene.people.tenant, state="OUTCOME_CONFIRMED").count() == MANY


def test_two_tenants_behind_one_host_share_its_rate(scene: Scene) -> None:
    """One clock for both; who has few to ask about does not wait for who has many."""
    people, noting = scene.people, Noting()
    lost(scene, MANY)
    with asked_through_a_line(scene, rate_per_s=RATE_PER_S) as line:
        lost(scene, FEW, by=the_other_tenant_asks(scene, line, rate_per_s=RATE_PER_S))
        line.fault = noting
        with reconcilers():
            wait_until(
                lambda: not unknown(people.tenant) + unknown(people.other_tenant),
                within_s=WITHIN_S,
                what="all settled",
            )
    assert noting.kept_to_the_rate
    assert noting.last_about(people.other_tenant) < noting.last_about(people.tenant)
    nothing_else_went_wrong(scene, strangers_acted=True)


def test_another_tenant_keeps_its_share(scene: Scene) -> None:
    """Its few attempts are due last, behind a long queue for a slow provider."""
    people = scene.people
    lost(scene, 12)
    with asked_through_a_line(scene, rate_per_s=2), Proxy(scene.provider.url) as quick:
        lost(scene, FEW, by=the_other_tenant_asks(scene, quick))
        passes = 0
        while unknown(people.other_tenant):
            reconcile_once(at_most=6)
            passes += 1
        assert unknown(people.tenant) > 0, "they did not wait for the others' queue"
        assert passes <= 2
        assert LookUp.objects.filter(tenant=people.tenant).exists()
    nothing_else_went_wrong(scene, strangers_acted=True)
