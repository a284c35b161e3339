"""The outage itself: what is prepared, what is watched, and what must have held."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

from ledger.models import Attempt, LookUp, Provider
from ledger.queries.invariants import findings
from ledger.rules.keys import correlation_id
from ledger.rules.states import State
from tests.crash.stack import table, verdict
from tests.crash.world import ARGS, REFUND, configuration
from tests.support import make
from tests.support.cast import Cast, cast
from tests.support.provider import ProviderProcess

LIMIT_PER_S, RETRY_AFTER_S = 10, 5
RATE_PER_S = 8
"""What the ledger is told; the rest is the margin for requests that are late on their way."""
SETTLES_WITHIN_S = 120.0
RULE = {"effect": "payment", "idempotent": True, "key_ttl_s": 86_400, "provider": "refunds"}
"""With the usual lease and settle window."""


@dataclass(frozen=True)
class Phase:
    """One stretch of time and what was counted in it."""

    name: str
    seconds: float
    look_ups: int
    requests: int
    busiest_second: int
    unknown: int
    at_the_desk: int

    @property
    def row(self) -> tuple[object, ...]:
        counted = (self.look_ups, self.requests, self.busiest_second, self.unknown, self.at_the_desk)
        return (self.name, f"{self.seconds:.0f} s", *counted)


HEAD = ("phase", "wall", "look-ups", "requests", "busiest second", "UNKNOWN at its end", "most at the desk")


@dataclass
class Outage:
    """So many attempts that nobody has heard from, of which some never happened, and a provider away."""

    provider: ProviderProcess
    attempts: int
    absent: int
    down_s: float
    phases: list[Phase] = field(default_factory=list)

    def show(self) -> int:
        """Run it and print the table; 1 where something did not hold."""
        self._prepare(cast())
        third = self.down_s / 3
        self._watch("refuses connections", third)
        self.provider.start()
        self.provider.set_limit(LIMIT_PER_S, retry_after=RETRY_AFTER_S)
        for name, mode in (("answers 503", "server_error"), ("hangs", "hang")):
            self.provider.set_mode(mode, on="look_up")
            self._watch(name, third)
        self.provider.set_mode("honest")
        self.provider.release()
        self._watch("is back", SETTLES_WITHIN_S, until_settled=True)
        print(table(HEAD, [phase.row for phase in self.phases]))
        ended = Counter(Attempt.objects.values_list("state", flat=True))
        print(f"\nended as: {dict(ended)}, effects at the provider: {self.provider.total_effects()}")
        return self._verdict(ended)

    def _prepare(self, people: Cast) -> None:
        """Attempts that were sent and never heard of; all but the absent ones have happened there."""
        make.policy(people.tenant, tools={REFUND: RULE})
        config = {**configuration(self.provider.url, REFUND), "rate_per_s": RATE_PER_S}
        Provider.objects.create(tenant=people.tenant, name="refunds", adapter="http", config=config)
        for number in range(self.absent, self.attempts):
            metadata = {"correlation_id": correlation_id(str(people.tenant.pk), f"refund:{number}")}
            self.provider.send("refunds", {**ARGS[REFUND], "metadata": metadata})
        self.provider.stop()
        print(f"The provider is down; {self.attempts} attempts become UNKNOWN …", flush=True)
        for number in range(self.attempts):
            make.unknown(people.key, REFUND, args=ARGS[REFUND], operation_key=f"refund:{number}")

    def _watch(self, name: str, seconds: float, *, until_settled: bool = False) -> None:
        began, looked_up, most = time.monotonic(), LookUp.objects.count(), 0
        while time.monotonic() < began + seconds and not (until_settled and not self._unknown()):
            most = max(most, Attempt.objects.filter(state=State.MANUAL_REVIEW).count())
            time.sleep(0.5)
        arrived = [at for at in self._arrivals() if at >= began]
        phase = Phase(
            name=name,
            seconds=time.monotonic() - began,
            look_ups=LookUp.objects.count() - looked_up,
            requests=len(arrived),
            busiest_second=busiest_second(arrived),
            unknown=self._unknown(),
            at_the_desk=most,
        )
        print(f"{phase.name}: {phase.seconds:.0f} s, {phase.unknown} UNKNOWN", flush=True)
        self.phases.append(phase)

    def _arrivals(self) -> list[float]:
        return self.provider.arrivals() if self.provider.is_running else []

    def _unknown(self) -> int:
        return Attempt.objects.filter(state=State.UNKNOWN).count()

    def _verdict(self, ended: Counter[str]) -> int:
        wanted = {
            State.OUTCOME_CONFIRMED: self.attempts - self.absent,
            State.FAILED_RETRYABLE: self.absent,
        }
        wrong = {
            "came to the desk": any(phase.at_the_desk for phase in self.phases),
            "not settled in time": bool(self._unknown()),
            "ended as something else": dict(ended) != {str(state): n for state, n in wanted.items() if n},
            "the limit was exceeded": any(phase.busiest_second > LIMIT_PER_S for phase in self.phases),
            "a second effect": self.provider.total_effects() != self.attempts - self.absent,
            "fsck": bool(list(findings())),
        }
        return verdict(wrong)


def busiest_second(arrived: list[float]) -> int:
    """The most requests that arrived within any one second."""
    return max((sum(1 for at in arrived if 0 <= at - first < 1) for first in arrived), default=0)
