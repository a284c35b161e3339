"""Who writes while a right is being taken from them waits for that, and is refused: on connections of their
own, for each kind of write that people have beside decisions on items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest
from django.db import connection

from ledger import deliveries as ledger_deliveries
from ledger import lifecycle
from ledger.lifecycle import OutcomeReport, Told
from ledger.models import AccessChange, Delivery, Destination, Event, ParkedFact, ReviewGroup, User
from ledger.transactions import database_clock, durable
from review import access, deliveries, destinations, ownership_rules, parked, teams
from review.destinations import Wanted
from review.door import NotPermitted, NotVisible
from review.ownership_rules import TypedRule
from review.queries.dead_letters import DeadFilter
from review.queries.destinations import newest_secret
from review.reach import Reach
from review.rights import hold_rights
from review.roles import Role, take_role
from tests.review.teams import in_force
from tests.support import make, races, told
from tests.support.beside import database_url_of_tests
from tests.support.cast import Cast, cast, person
from tests.support.processes import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

WAITS = """
    SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
"""
ROUNDS = 8


@dataclass(frozen=True)
class Scene:
    """What there is to write to, and who still may: a person with every right."""

    people: Cast
    writer: User
    destination: Destination
    dead: Delivery
    waiting: Delivery
    fact: ParkedFact
    team: ReviewGroup

    @property
    def chosen(self) -> DeadFilter:
        return DeadFilter(destination=self.destination.pk, error="")

    def plan(self) -> str:
        return deliveries.plan_redelivery(
            self.writer, self.chosen, until=database_clock(), why="they are back", rate_per_s=1
        )

    def rotate(self) -> str:
        replaces = newest_secret(self.destination.pk)
        return destinations.rotate_secret(
            self.writer, self.destination.pk, overlap=timedelta(0), replaces=replaces
        )


Write = Callable[[Scene], Any]

WRITES: Mapping[str, Write] = {
    "redeliver": lambda s: deliveries.redeliver(s.writer, s.dead.pk, why="once more"),
    "give up": lambda s: deliveries.give_up(s.writer, s.waiting.pk, why="closed"),
    "plan": Scene.plan,
    "note on a parked fact": lambda s: parked.note(s.writer, s.fact.pk, why="asked them"),
    "dismiss a parked fact": lambda s: parked.dismiss(s.writer, s.fact.pk, why="nobody's"),
    "add a destination": lambda s: destinations.add(
        s.writer, Wanted("acme", "more", "https://93.184.216.34/hooks", "response")
    ),
    "pause": lambda s: destinations.pause(s.writer, s.destination.pk, why="they moved"),
    "rotate": Scene.rotate,
    "create a team": lambda s: teams.create(s.writer, "acme", name="night"),
    "rename a team": lambda s: teams.rename(s.writer, s.team.pk, name="night"),
    "add a member": lambda s: teams.add_member(s.writer, s.team.pk, username="operator"),
    "take a member out": lambda s: teams.remove_member(s.writer, s.team.pk, username="approver"),
    "save rules": lambda s: ownership_rules.save_rules(
        s.writer, "acme", [TypedRule("*", owner="operator")], based_on=1, reach=Reach.NEW, why="as agreed"
    ),
}


@pytest.fixture
def scene(transactional_db: None) -> Scene:
    people = cast()
    destination = told.destination(people.tenant)
    dead, waiting = (told.delivery_of(make.confirmed(people.key)) for _ in range(2))
    durable(partial(ledger_deliveries.give_up, delivery_id=dead.pk, by=people.operator, why="down"))
    said = OutcomeReport(worker_id="worker-1", outcome="succeeded", result_ref="res_9")
    durable(lambda: lifecycle.take_outcome(key=people.key, told=Told("", "invoice:lost"), report=said))
    in_force(people, TypedRule("*", owner="approver"))
    team_id = teams.create(people.admin, "acme", name="day")
    teams.add_member(people.admin, team_id, username="approver")
    writer = person("writer", people.tenant, Role.APPROVER, Role.ADMIN)
    team = ReviewGroup.objects.get(pk=team_id)
    return Scene(people, writer, destination, dead, waiting, ParkedFact.objects.get(), team)


@contextmanager
def watcher() -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database_url_of_tests(), autocommit=True) as watching:
        yield watching


@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_comes_while_the_right_is_taken_waits_and_is_refused(scene: Scene, name: str) -> None:
    refused: list[BaseException] = []

    def write() -> None:
        try:
            WRITES[name](scene)
        except (NotPermitted, NotVisible) as error:
            refused.append(error)
        finally:
            connection.close()

    with watcher() as watching, ThreadPoolExecutor(1) as other:

        def take() -> Any:
            hold_rights(scene.people.tenant, to_change=True)
            take_role(scene.writer, scene.people.tenant, Role.VIEWER)
            writing = other.submit(write)
            wait_until(
                lambda: writing.done() or watching.execute(WAITS).fetchone() == (True,),
                within_s=10,
                what="it waits for the rights",
            )
            assert not writing.done(), "it wrote past the change of rights"
            return writing

        durable(take).result(20)
    assert refused


def test_a_redelivery_and_the_loss_of_its_right_are_in_one_order(scene: Scene) -> None:
    """Redelivered before the right was taken, or refused: nothing is written after it."""
    people = scene.people
    for number in range(ROUNDS):
        sender = person(f"sender-{number}", people.tenant, Role.OPERATOR)
        delivery = told.dead(make.confirmed(people.key), people.operator)
        answer, _ = races.at_once(
            lambda sender=sender, delivery=delivery: deliveries.redeliver(sender, delivery.pk, why="go"),  # type: ignore[misc]
            lambda sender=sender: access.take_role_away(  # type: ignore[misc]
                people.admin, "acme", sender.pk, role=Role.VIEWER, why="left"
            ),
            may_raise=(NotPermitted, NotVisible),
        )
        taken = AccessChange.objects.get(person=sender)
        again = Event.objects.filter(
            operation_id=delivery.operation_id, kind="delivery.redelivered", at__lt=taken.at
        )
        refused = isinstance(answer, NotPermitted | NotVisible)
        assert again.exists() is not refused
        assert Delivery.objects.get(pk=delivery.pk).state == ("DEAD_LETTERED" if refused else "PENDING")
