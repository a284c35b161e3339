"""A pass asks many at once: nobody waits for another, nobody is asked by too many, nothing is lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection
from hypothesis import given
from hypothesis import strategies as st

from ledger import lifecycle
from ledger.http import close_connections
from ledger.models import Attempt, LookUp, Provider
from ledger.providers import pace
from ledger.providers.reading import NotNow, Reader
from ledger.queries.invariants import findings
from ledger.reconciliation import health, reconcile_once, runner
from ledger.reconciliation.claims import AWAY_AFTER, LOOK_UP_LEASE, Lane
from ledger.reconciliation.places import PLACES_OF_A_LANE, SLOW_AFTER_S, Places
from ledger.reconciliation.turns import SharedTurns
from ledger.rules.keys import correlation_id
from ledger.rules.states import State
from ledger.transactions import database_clock
from tests.support import make
from tests.support.beside import database_url_of_tests, start_command
from tests.support.cast import Cast, cast
from tests.support.processes import wait_until
from tests.support.provider import ProviderProcess, asking
from tests.support.proxy import Honest, Proxy, Reply, Request, down

WITHIN_S = 10.0
"""Less than a look-up may take: who waits longer for others has waited for them in vain."""
FIELDS = ("amount", "currency")
ARGS = {"amount": 5, "currency": "EUR"}
RULE = {"effect": "payment", "idempotent": True, "key_ttl_s": 3_600, "settle_s": 0.05}


@dataclass
class Counting:
    """A provider's door that counts who is inside, and lets nobody out before `opened`."""

    opened: threading.Event = field(default_factory=threading.Event)
    most: int = 0
    arrived: int = 0
    inside: int = 0
    on_arrival: Callable[[Counting], None] = lambda _: None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, _: Request, ask: Honest) -> Reply | None:
        with self._lock:
            self.arrived += 1
            self.inside += 1
            self.most = max(self.most, self.inside)
            self.on_arrival(self)
        came = self.opened.wait(WITHIN_S)
        with self._lock:
            self.inside -= 1
        return ask() if came else Reply(500, b"{}")


def open_door() -> Counting:
    door = Counting()
    door.opened.set()
    return door


@dataclass
class Office:
    """One tenant, and providers each of which is asked through a line of its own."""

    people: Cast
    provider: ProviderProcess
    lines: dict[str, Proxy]

    def lost(self, name: str, count: int) -> None:
        """So many payments through it that happened, and whose agent never heard."""
        for number in range(count):
            key = f"{name}:{number}"
            metadata = {"correlation_id": correlation_id(str(self.people.tenant.pk), key)}
            self.provider.send("refunds", {**ARGS, "metadata": metadata})
            make.unknown(self.people.key, f"pay.{name}", args=ARGS, operation_key=key)
        make.waited(Attempt.objects.all(), next_check_at=database_clock() - timedelta(minutes=1))

    def states(self, name: str) -> set[str]:
        return set(Attempt.objects.filter(tool=f"pay.{name}").values_list("state", flat=True))


@pytest.fixture
def office(transactional_db: None, provider: ProviderProcess) -> Iterator[Office]:
    people, names = cast(), ("a", "b", "c")
    make.policy(people.tenant, tools={f"pay.{name}": {**RULE, "provider": name} for name in names})
    with ExitStack() as lines:
        office = Office(people, provider, {n: lines.enter_context(Proxy(provider.url)) for n in names})
        for name, line in office.lines.items():
            config = asking(f"{line.url}/refunds", FIELDS)
            Provider.objects.create(tenant=people.tenant, name=name, adapter="http", config=config)
        yield office
        close_connections()
    assert list(findings()) == []


def hurry() -> None:
    """The leases of whoever died are over."""
    Attempt.objects.filter(lookup_lease_until__isnull=False).update(lookup_lease_until=database_clock())


def passes() -> None:
    while reconcile_once().more:
        pass


def test_two_that_hang_do_not_delay_a_third(office: Office) -> None:
    """They answer only when everything of the third was asked for."""
    hanging, quick, many = Counting(), open_door(), 12
    quick.on_arrival = lambda door: hanging.opened.set() if door.arrived == many else None
    office.lines["a"].fault = office.lines["b"].fault = hanging
    office.lines["c"].fault = quick
    for name, count in (("a", 3), ("b", 3), ("c", many)):
        office.lost(name, count)
    passes()
    assert [office.states(name) for name in "abc"] == [{State.OUTCOME_CONFIRMED}] * 3
    assert LookUp.objects.filter(answer="unavailable").count() == 0


def test_one_that_hangs_takes_one_place_and_one_lease(office: Office) -> None:
    """What nobody asks about yet is there for whoever comes."""
    office.lost("a", 5)
    door = office.lines["a"].fault = Counting()
    with ThreadPoolExecutor(1) as beside:
        passing = beside.submit(_then_hang_up, passes)
        wait_until(lambda: door.arrived == 1, within_s=WITHIN_S, what="the first question")
        held = Attempt.objects.filter(lookup_lease_until__gt=database_clock()).count()
        door.opened.set()
        passing.result(30)
    assert (held, office.states("a")) == (1, {State.OUTCOME_CONFIRMED})


def test_one_is_asked_by_no_more_than_a_lane_has_places(office: Office) -> None:
    """Once it has answered often enough to be asked by many, the door stays shut until no more come."""
    office.lost("a", 4 * PLACES_OF_A_LANE)
    door = office.lines["a"].fault = open_door()

    def shut_for_a_while(door: Counting) -> None:
        if door.arrived == 2 * PLACES_OF_A_LANE:
            door.opened.clear()
        elif door.inside == PLACES_OF_A_LANE:
            threading.Timer(0.3, door.opened.set).start()

    door.on_arrival = shut_for_a_while
    passes()
    assert office.states("a") == {State.OUTCOME_CONFIRMED}
    assert (door.most, door.arrived) == (PLACES_OF_A_LANE, 4 * PLACES_OF_A_LANE)


def test_one_that_is_away_is_asked_by_one_at_a_time(office: Office) -> None:
    office.lost("a", 20)
    office.lost("b", 5)
    office.lines["a"].fault = down
    passes()
    assert len(office.lines["a"].requests) == AWAY_AFTER
    assert (office.states("a"), office.states("b")) == ({State.UNKNOWN}, {State.OUTCOME_CONFIRMED})


def test_answers_are_applied_where_the_others_cannot_be_made_due(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the provider would stay away for ever, and be asked the same again and again."""
    office.lost("a", 3)
    office.lost("b", 3)
    Provider.objects.filter(name="a").update(failures=AWAY_AFTER, unavailable_since=database_clock())

    def times_out(_: object) -> None:
        raise OperationalError("canceling statement due to statement timeout")

    monkeypatch.setattr(health, "lanes_of", times_out)
    passes()
    back = Provider.objects.get(name="a")
    assert (back.failures, back.unavailable_since, back.last_answer_at is None) == (0, None, False)
    assert [office.states(name) for name in "ab"] == [{State.OUTCOME_CONFIRMED}] * 2


def test_a_killed_pass_leaves_leases_that_end(office: Office) -> None:
    for name in "abc":
        office.lost(name, 5)
    killed = start_command("reconcile", "--once", LEDGER_FAULT_POINT="reconciler.answered")
    assert killed.wait(60) == -signal.SIGKILL
    held = Attempt.objects.filter(lookup_lease_until__gt=database_clock())
    assert 0 < held.count() <= 3
    assert not held.filter(lookup_lease_until__gt=database_clock() + LOOK_UP_LEASE).exists()
    passes()
    assert set(held.values_list("lookup_epoch", flat=True)) == {1}, "they are left to the dead one"
    hurry()
    passes()
    assert {state for name in "abc" for state in office.states(name)} == {State.OUTCOME_CONFIRMED}
    assert LookUp.objects.count() == 15


def test_a_database_that_goes_away_ends_the_pass_and_its_threads(office: Office) -> None:
    for name in "abc":
        office.lost(name, 8)
    door, server = Counting(), connection.cursor().connection.info.backend_pid
    for line in office.lines.values():
        line.fault = door

    def end_the_session(door: Counting) -> None:
        if door.arrived == 3:
            with psycopg.connect(database_url_of_tests()) as somebody:
                somebody.execute("SELECT pg_terminate_backend(%s)", [server])
            door.opened.set()

    door.on_arrival = end_the_session
    with pytest.raises(OperationalError):
        reconcile_once()
    connection.close()
    wait_until(lambda: not _asking_threads(), within_s=WITHIN_S, what="no thread is left")
    hurry()
    passes()
    assert {state for name in "abc" for state in office.states(name)} == {State.OUTCOME_CONFIRMED}


def test_one_answer_that_cannot_be_applied_keeps_no_other_waiting(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.lost("a", 6)
    bad = Attempt.objects.order_by("pk").values_list("pk", flat=True)[2]
    applied, confirmed = lifecycle.apply_answer, lifecycle.confirm_plain

    def confirm_plain(answers: list[lifecycle.Answered]) -> set[str]:
        if any(answer.attempt_id == bad for answer in answers):
            raise ValueError("planned")
        return confirmed(answers)

    def apply_answer(**answer: Any) -> Any:
        if answer["attempt_id"] == bad:
            raise ValueError("planned")
        return applied(**answer)

    monkeypatch.setattr(runner, "apply_answer", apply_answer)
    monkeypatch.setattr(runner, "confirm_plain", confirm_plain)
    passes()
    assert set(Attempt.objects.exclude(state=State.OUTCOME_CONFIRMED).values_list("pk", flat=True)) == {bad}
    monkeypatch.undo()
    hurry()
    passes()
    assert office.states("a") == {State.OUTCOME_CONFIRMED}


@pytest.mark.parametrize("count", [1, 3], ids=["alone", "together"])
def test_an_answer_is_as_old_as_its_question(
    office: Office, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """A reconciler that stops between the two must not make it newer."""
    heard_at = []

    def at(point: str) -> None:
        if point == "reconciler.answered":
            heard_at.append(database_clock())

    monkeypatch.setattr(runner, "fault_point", at)
    office.lost("a", count)
    began_at = database_clock()
    passes()
    answers = LookUp.objects.all()
    assert len(answers) == count
    assert all(answer.asked_at and began_at < answer.asked_at < max(heard_at) for answer in answers)
    assert all(min(heard_at) < answer.answered_at for answer in answers)


def test_who_waits_for_a_turn_heeds_a_rest_that_another_was_told() -> None:
    class Turns(pace.TurnsOfThisProcess):
        rests = iter([0.0, 5.0])

        def take(self, _name: str, _spacing_s: float, _within_s: float) -> float:
            return 0.001

        def next_in_s(self, *_names: str) -> float:
            return next(self.rests)

    with pace.shared(Turns()), pytest.raises(NotNow):
        Reader(None, {}, 10.0).ask("GET", "http://127.0.0.1:9/", {})


@pytest.mark.django_db(transaction=True)
def test_a_turn_that_need_not_last_leaves_what_must() -> None:
    """Only the statement itself does not wait for the disk."""
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = on")
        SharedTurns().take("host", 1.0, 1.0)
        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone() == ("on",)
        cursor.execute("RESET synchronous_commit")


@given(st.lists(st.tuples(st.integers(0, 40), st.booleans(), st.floats(0, 3))))
def test_places_grow_with_quick_answers_only(steps: list[tuple[int, bool, float]]) -> None:
    places = Places(Lane(1, "bank", ()))
    for wanted, readable, took_s in steps:
        places.taken += min(wanted, places.free)
        assert places.taken <= PLACES_OF_A_LANE
        before = places.most
        if places.taken:
            places.answered(readable=readable, took_s=took_s)
        assert places.free >= 0
        assert (places.most == 1) or readable or before == places.most
        assert places.most <= before or (took_s < SLOW_AFTER_S and places.most == before + 1)


def _asking_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("ask")]


def _then_hang_up(work: Callable[[], None]) -> None:
    try:
        work()
    finally:
        connection.close()
