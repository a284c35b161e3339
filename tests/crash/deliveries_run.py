"""The run itself: operations at a steady pace, blows beside them, and what each consumer's books say."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from django.db.models import F

from ledger.access import Grant
from ledger.deliveries import add_destination, give_up, plan_redelivery
from ledger.events import SYSTEM
from ledger.models import Attempt, Delivery, Destination, Provider
from ledger.rules.keys import correlation_id
from ledger.rules.states import DeliveryState, State
from ledger.transactions import database_clock, durable
from tests.crash.bookkeeper import Bookkeeper
from tests.crash.stack import table, verdict
from tests.crash.strikes import Strikes
from tests.crash.working import Agents
from tests.crash.world import ARGS, MAIL, REFUND, RESOURCES, configuration
from tests.support import make
from tests.support.cast import cast
from tests.support.processes import RunningLedger, wait_until
from tests.support.provider import ProviderProcess, sending

SLOW, DEAD, RESTARTED = "slow", "dead", "restarted"
OTHERS, OTHERS_THERE = "the others", "the others, while there"
"""Than the dead one. What was settled for the restarted one while it was away itself stands in the first row
alone; the second is judged."""
SLOW_S = 0.3
RULES: dict[str, dict[str, Any]] = {
    MAIL: {"effect": "message", "provider": "messages"},
    REFUND: {
        "effect": "payment", "approvals": 1, "idempotent": True, "key_ttl_s": 86_400, "provider": "refunds",
        "executor": "ledger", "dispatch_timeout_s": 10, "settle_s": 1,
    },
}  # fmt: skip
"""Agents send messages, at a provider that keeps no keys; the ledger itself sends refunds."""
SETTLES_WITHIN_S = 240.0
CATCHES_UP_WITHIN_S = 330.0
"""Longer than the second wait of the schedule."""
WORST_RATIO, JUDGED_FROM = 2.0, 500
"""Of fewer operations the ages are shown and not judged: five restarts are most of such a run."""
Ages = dict[str, tuple[list[float], list[float]]]
"""In seconds, of each consumer: in the quiet run, and under blows."""
UNDELIVERED = (DeliveryState.PENDING, DeliveryState.SENT)


HEAD = ("deliveries", "ACKED", "dead letters", "tries", "came again", "applied", "applied twice", "missing")
AGES = ("delivery age", "quiet p50", "quiet p95", "struck p50", "struck p95", "p95 ratio")


@dataclass(frozen=True)
class Size:
    """How many operations, how long one consumer is dead, and how many operations begin in a second."""

    operations: int
    dead_s: float
    per_s: float

    @property
    def quiet(self) -> int:
        return max(30, self.operations // 4)


@dataclass
class Deliveries:
    """One run from one seed."""

    ledger: RunningLedger
    provider: ProviderProcess
    directory: Path
    size: Size
    draw: Random
    consumers: dict[str, Bookkeeper] = field(default_factory=dict)
    by_a_person: int = 0

    def show(self) -> int:
        """Run it and print the table; 1 where something did not hold."""
        began, strikes = time.monotonic(), Strikes(self.ledger, self.draw)
        with self._consumers():
            self._prepare()
            quiet_from = database_clock()
            self._begin("quiet", self.size.quiet)
            self._wait_until_confirmed()
            self._wait_until_told(*self.consumers, within_s=SETTLES_WITHIN_S)
            struck_from = database_clock()
            with strikes.fall(
                self.consumers[DEAD], self.consumers[RESTARTED], self.size.dead_s, self._lasts_s
            ):
                self._begin("struck", self.size.operations)
            self._wait_until_confirmed()
            self._wait_until_told(SLOW, within_s=SETTLES_WITHIN_S)
            self._let_the_others_catch_up()
        ages = {
            who: (self._ages(names, quiet_from, until=struck_from), self._ages(names, struck_from, but=but))
            for who, names, but in (
                *((name, (name,), ()) for name in self.consumers),
                (OTHERS, (SLOW, RESTARTED), ()),
                (OTHERS_THERE, (SLOW, RESTARTED), strikes.away),
            )
        }
        return self._report(strikes, ages, time.monotonic() - began)

    # --- what is prepared ----------------------------------------------------------------------------------

    @contextmanager
    def _consumers(self) -> Iterator[None]:
        for name, work_s in ((SLOW, SLOW_S), (DEAD, 0.0), (RESTARTED, 0.0)):
            self.consumers[name] = Bookkeeper(self.directory / name, work_s=work_s)
            self.consumers[name].start()
        try:
            yield
        finally:
            for consumer in self.consumers.values():
                consumer.kill()

    def _prepare(self) -> None:
        people = self.people = cast()
        make.policy(people.tenant, by=people.admin, tools=RULES)
        for tool in (MAIL, REFUND):
            config = configuration(self.provider.url, tool)
            if tool == REFUND:
                url = f"{self.provider.url}/{RESOURCES[tool]}"
                config["send"] = sending(url, ARGS[tool])
            Provider.objects.create(tenant=people.tenant, name=RESOURCES[tool], adapter="http", config=config)
        for name, consumer in self.consumers.items():
            secret = self._destination(name, consumer.url)
            consumer.kill()
            consumer.start(secret)
        grant = Grant(scopes=["tool:*"], verbs=["ingest", "read"], days=1)
        self.key_text = make.key_of(people.agent, grant)[0]

    def _destination(self, name: str, url: str) -> str:
        tenant_id = self.people.tenant.pk
        return durable(
            lambda: add_destination(tenant_id=tenant_id, name=name, url=url, ack="response", actor=SYSTEM)
        )[1]

    # --- what is done --------------------------------------------------------------------------------------

    @property
    def _lasts_s(self) -> float:
        return self.size.operations / self.size.per_s

    def _begin(self, phase: str, operations: int) -> None:
        """So many operations at their pace."""
        print(f"{phase}: {operations} operations …", flush=True)
        Agents(self.ledger.address, self.key_text, self.provider.url).work(
            phase, operations, per_s=self.size.per_s
        )

    def _wait_until_confirmed(self) -> None:
        begun = Attempt.objects.exclude(state__in=[State.OUTCOME_CONFIRMED, State.SUPERSEDED])
        wait_until(lambda: not begun.exists(), within_s=SETTLES_WITHIN_S, what="all confirmed")

    def _wait_until_told(self, *names: str, within_s: float) -> None:
        waiting = Delivery.objects.filter(destination__name__in=names, state__in=UNDELIVERED)
        wait_until(lambda: not waiting.exists(), within_s=within_s, what=f"{', '.join(names)} told")

    def _let_the_others_catch_up(self) -> None:
        """By itself; a person gives up what waits for longer, and has it redelivered."""
        within_s = min(CATCHES_UP_WITHIN_S, 10 + 6 * self.size.dead_s)
        try:
            self._wait_until_told(DEAD, RESTARTED, within_s=within_s)
        except AssertionError:
            left = list(Delivery.objects.filter(state__in=UNDELIVERED).values_list("pk", flat=True))
            self.by_a_person = len(left)
            self._redeliver(left)
            self._wait_until_told(DEAD, RESTARTED, within_s=SETTLES_WITHIN_S)

    def _redeliver(self, left: list[str]) -> None:
        by, why = self.people.operator, "It is back, and its next try would come late."
        for delivery_id in left:
            durable(partial(give_up, delivery_id=delivery_id, by=by, why=why))
        durable(
            lambda: plan_redelivery(
                tenant_id=self.people.tenant.pk,
                delivery_ids=left,
                by=by,
                why=why,
                rate_per_s=100.0,
                chosen_by={},
            )
        )
        planned = Delivery.objects.filter(pk__in=left, state=DeliveryState.DEAD_LETTERED)
        wait_until(lambda: not planned.exists(), within_s=SETTLES_WITHIN_S, what="the plan has run")

    # --- what became of it ---------------------------------------------------------------------------------

    def _ages(
        self,
        names: Sequence[str],
        since: datetime,
        *,
        until: datetime | None = None,
        but: Sequence[tuple[datetime, datetime]] = (),
    ) -> list[float]:
        """How old each delivery was when it was acknowledged, in seconds, the youngest first; `but` leaves
        out what was settled for the restarted consumer within these spans."""
        told = Delivery.objects.filter(
            destination__name__in=names, settlement__at__gte=since, acked_at__isnull=False
        )
        if until is not None:
            told = told.filter(settlement__at__lt=until)
        for span in but:
            told = told.exclude(destination__name=RESTARTED, settlement__at__range=span)
        spans = told.annotate(age=F("acked_at") - F("settlement__at")).values_list("age", flat=True)
        return sorted(span.total_seconds() for span in spans)

    def _report(self, strikes: Strikes, ages: Ages, wall_s: float) -> int:
        books = {name: self._books(name) for name in self.consumers}
        print(table(("consumer", *HEAD), [(name, *found.row) for name, found in books.items()]), end="\n\n")
        print(table(AGES, [_ages_row(name, *both) for name, both in ages.items()]), end="\n\n")
        effects = Counter(self.provider.all_effects())
        counted = [
            ("operations", self.size.quiet + self.size.operations),
            ("effects at the provider", effects.total()),
            ("most effects of one operation", max(effects.values())),
            *((f"killed: {name}", count) for name, count in sorted(strikes.killed.items())),
            ("left to a person, and redelivered", self.by_a_person),
            ("wall", f"{wall_s:.0f} s"),
        ]
        print(table(("what", "count"), counted))
        return self._verdict(books, effects, ages)

    def _verdict(self, books: dict[str, Books], effects: Counter[str], ages: Ages) -> int:
        fsck = self.ledger.manage("fsck")
        expected = {
            correlation_id(str(self.people.tenant.pk), key)
            for key in Attempt.objects.values_list("operation__operation_key", flat=True)
        }
        wrong = {
            "a result was applied twice": any(found.twice for found in books.values()),
            "a result was never applied": any(found.missing for found in books.values()),
            "a delivery still waits": Delivery.objects.filter(state__in=UNDELIVERED).exists(),
            "a tool ran twice, or never": set(effects) != expected or max(effects.values()) != 1,
            "the p95 age of the others is more than twice the quiet one": self.size.operations >= JUDGED_FROM
            and _ratio(*ages[OTHERS_THERE]) > WORST_RATIO,
            f"fsck: {fsck.stdout}{fsck.stderr}": fsck.returncode != 0,
        }
        print(fsck.stdout.strip())
        return verdict(wrong)

    def _books(self, name: str) -> Books:
        of = Delivery.objects.filter(destination=Destination.objects.get(name=name))
        applied = self.consumers[name].applied()
        acked = set(of.filter(state=DeliveryState.ACKED).values_list("webhook_id", flat=True))
        return Books(
            deliveries=of.count(),
            acked=len(acked),
            dead=of.filter(state=DeliveryState.DEAD_LETTERED).count(),
            tries=sum(of.values_list("tries", flat=True)),
            came_again=self.consumers[name].came_again(),
            applied=applied.total(),
            twice=sum(1 for times in applied.values() if times > 1),
            missing=len(acked - set(applied)),
        )


@dataclass(frozen=True)
class Books:
    """What the ledger says of one consumer's deliveries, and what stands in its own books."""

    deliveries: int
    acked: int
    dead: int
    tries: int
    came_again: int
    applied: int
    twice: int
    missing: int

    @property
    def row(self) -> tuple[object, ...]:
        return (
            *(self.deliveries, self.acked, self.dead, self.tries),
            *(self.came_again, self.applied, self.twice, self.missing),
        )


def _percentiles(ages: list[float]) -> tuple[float, float]:
    return tuple(ages[int(len(ages) * share)] for share in (0.5, 0.95))  # type: ignore[return-value]


def _ages_row(name: str, quiet: list[float], struck: list[float]) -> tuple[str, ...]:
    spans = (f"{span:.2f} s" for span in (*_percentiles(quiet), *_percentiles(struck)))
    return (name, *spans, f"{_ratio(quiet, struck):.2f}")


def _ratio(quiet: list[float], struck: list[float]) -> float:
    return _percentiles(struck)[1] / _percentiles(quiet)[1]
