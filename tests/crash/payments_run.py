"""The run itself: an agent's lives and deaths, a database that stops, a desk that answers, and the count."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db import connections

from ledger.access import Grant
from ledger.lifecycle import DecisionRefused
from ledger.models import Approval, ApprovalUse, Attempt, Operation, Provider, ReviewItem
from ledger.rules.keys import correlation_id
from ledger.rules.states import State
from review import decisions
from tests.crash.payer import SOME_WAIT
from tests.crash.stack import table, verdict
from tests.crash.watching import Watch
from tests.support import make
from tests.support.cast import cast
from tests.support.localstripe import LocalStripe, as_form, bearer
from tests.support.processes import RunningLedger, wait_until
from tests.support.proxy import Honest, Proxy, Reply, Request

ROOT = Path(__file__).parents[2]
CHARGE, REFUND = "charge.create", "refund.create"
RULE = {
    "effect": "payment",
    "provider": "stripe",
    "dispatch_timeout_s": 3,
    "settle_s": 0.5,
    "max_checks": 1000,
}
IN_THE_AGENT = (
    "before the intent", "after the intent", "after leave", "after the answer", "after its request id",
    "after the outcome",
)  # fmt: skip
ON_THE_LINE = ("request lost", "answer lost")
ANY_MOMENT = "at any moment"
POINTS = (*IN_THE_AGENT, *ON_THE_LINE, ANY_MOMENT)
SETTLES_WITHIN_S = 180.0


@dataclass
class Death:
    """Where a life is to end: the so-manieth time at this point, or after so many seconds."""

    point: str
    number: int
    after_s: float

    @property
    def told(self) -> str:
        return f"{self.point}:{self.number}" if self.point in IN_THE_AGENT else ""


@dataclass
class Payments:
    """One run from one seed."""

    ledger: RunningLedger
    stripe: LocalStripe
    directory: Path
    operations: int
    seed: int
    stops: int
    kills: Counter[str] = field(default_factory=Counter)
    approvals: int = 0
    lives: int = 0
    points_left: list[str] = field(default_factory=list)
    agent: subprocess.Popen[bytes] | None = None
    death: Death | None = None
    sent_in_this_life: int = 0

    def show(self) -> int:
        """Run it and print the table; 1 where something did not hold."""
        blind = self._blind_retry()
        print(f"a blind retry of one charge, with the same idempotency key: {blind} charges", flush=True)
        self.draw, began = random.Random(self.seed), time.monotonic()
        self.people = cast()
        self._prepare()
        with Proxy(self.stripe.url) as self.line, Watch(self.ledger, self._effects, self._stop_at()) as watch:
            self.line.fault = self._on_the_line
            while self._lives_until_it_ends() == SOME_WAIT:
                with watch.database_stays():
                    self._answer_the_desk()
        return self._report(watch, blind, time.monotonic() - began)

    # --- what is prepared ----------------------------------------------------------------------------------

    def _blind_retry(self) -> int:
        """How often somebody pays who sends again what was not answered."""
        card = self.stripe.card()
        body = {"amount": 999, "currency": "eur", "source": card, "metadata": {"correlation_id": "blind"}}
        for _ in range(2):
            headers = {**bearer(), "Idempotency-Key": "the same"}
            self.stripe.client.post("/v1/charges", data=as_form(body), headers=headers).raise_for_status()
        return len(self.stripe.effects("blind"))

    def _prepare(self) -> None:
        tenant, card = self.people.tenant, self.stripe.card()
        make.policy(tenant, by=self.people.admin, tools={CHARGE: RULE, REFUND: RULE})
        canary = self.stripe.post("charges", amount=1000, currency="eur", source=card)["id"]
        Provider.objects.create(
            tenant=tenant, name="stripe", adapter="stripe", config=configuration(self.stripe.url, canary)
        )
        grant = Grant(scopes=["tool:*"], verbs=["ingest", "read"], days=1)
        self.key_text = make.key_of(self.people.agent, grant)[0]
        self._steps_file.write_text(json.dumps(steps(self.operations, card, self.draw)))

    @property
    def _steps_file(self) -> Path:
        return self.directory / "steps.json"

    def _stop_at(self) -> list[int]:
        """At so many effects the database stops."""
        return [self.operations * (number + 1) // (2 * self.stops) for number in range(self.stops)]

    # --- the agent's lives ---------------------------------------------------------------------------------

    def _lives_until_it_ends(self) -> int:
        """Start the agent again and again; the exit code of the first life that ends by itself."""
        while True:
            ended = self._one_life(self._next_death())
            if ended != -signal.SIGKILL:
                assert ended in (0, SOME_WAIT), f"the agent ended with {ended}"
                return ended

    def _next_death(self) -> Death | None:
        if self.kills.total() >= self.operations // 2:
            return None
        if not self.points_left:
            self.points_left = self.draw.sample(POINTS, len(POINTS))
        point, number = self.points_left.pop(), self.draw.randint(1, 3)
        if point == "before the intent":
            number = self.draw.randint(1, self.operations)
        return Death(point, number, after_s=self.draw.uniform(0.5, 5.0))

    def _one_life(self, death: Death | None) -> int:
        self.lives += 1
        self.death, self.sent_in_this_life = death, 0
        environment = {
            "LEDGER_URL": self.ledger.address,
            "LEDGER_API_KEY": self.key_text,
            "LEDGER_STATE_DIR": str(self.directory / "state"),
            "STRIPE_URL": self.line.url,
            "STEPS": str(self._steps_file),
            "DIE_AT": death.told if death else "",
        }
        command = [sys.executable, "-m", "tests.crash.payer"]
        self.agent = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment})
        try:
            self.agent.wait(death.after_s if death and death.point == ANY_MOMENT else SETTLES_WITHIN_S)
        except subprocess.TimeoutExpired:
            assert death is not None
            assert death.point == ANY_MOMENT, "the agent does not come to its end"
            self.agent.kill()
        ended = self.agent.wait()
        if ended == -signal.SIGKILL and death is not None:
            self.kills[death.point] += 1
        return ended

    def _on_the_line(self, _: Request, ask: Honest) -> Reply | None:
        """Between the agent and Stripe, where a life may end with its request or its answer under way."""
        death, self.sent_in_this_life = self.death, self.sent_in_this_life + 1
        if death is None or death.point not in ON_THE_LINE or self.sent_in_this_life != death.number:
            return ask()
        if death.point == "answer lost":
            ask()
        assert self.agent is not None
        self.agent.kill()
        return None

    # --- the desk ------------------------------------------------------------------------------------------

    def _answer_the_desk(self) -> None:
        """Wait until all is known or before a person, then let two people approve what is proven absent."""
        connections.close_all()
        wait_until(lambda: not self._being_found_out(), within_s=SETTLES_WITHIN_S, what="all found out")
        approved = Approval.objects.filter(used_at=None, voided_at=None).values("attempt_id")
        waiting = Attempt.objects.filter(state=State.MANUAL_REVIEW).exclude(pk__in=approved)
        for item in ReviewItem.objects.filter(attempt__in=waiting, closed_at=None):
            reason = item.attempt.reason
            assert reason == "not_idempotent", f"{item.attempt} is at the desk as {reason}"
            self._approve(item)

    def _being_found_out(self) -> bool:
        return Attempt.objects.filter(state__in=[State.DISPATCHED, State.UNKNOWN]).exists()

    def _approve(self, item: ReviewItem) -> None:
        why = "Stripe was asked twice and has no such payment."
        try:
            for person in (self.people.approver, self.people.second_approver):
                decisions.approve(person, item.pk, why=why)
            self.approvals += 1
        except DecisionRefused:
            decisions.recheck(self.people.operator, item.pk, why="The last answer is too old.")

    # --- what became of it ---------------------------------------------------------------------------------

    def _effects(self) -> Counter[str]:
        """How often each operation of ours has happened at Stripe, by its correlation id."""
        found = self.stripe.all_effects()
        return Counter({name: len(ids) for name, ids in found.items() if name not in ("", "blind")})

    def _report(self, watch: Watch, blind: int, wall_s: float) -> int:
        connections.close_all()
        ours = {
            correlation_id(str(self.people.tenant.pk), key)
            for key in Operation.objects.values_list("operation_key", flat=True)
        }
        effects = self._effects()
        confirmed = Attempt.objects.filter(state=State.OUTCOME_CONFIRMED)
        by = Counter(confirmed.values_list("confirmed_by", flat=True))
        rows = [
            ("operations", Operation.objects.count()),
            ("lives of the agent", self.lives),
            *((f"killed {point}", self.kills[point]) for point in POINTS),
            ("killed in all", self.kills.total()),
            ("database stops", watch.stopped),
            ("approvals (two people each)", self.approvals),
            ("approvals used", ApprovalUse.objects.count()),
            ("approvals voided", Approval.objects.exclude(voided_at=None).count()),
            ("effects at Stripe", effects.total()),
            ("most effects of one operation, at any time", watch.most),
            ("operations with more than one effect", sum(1 for n in effects.values() if n > 1)),
            *((f"confirmed by {who}", by[who]) for who in ("agent", "lookup", "operator")),
            ("looked at Stripe, times", watch.looks),
            ("wall", f"{wall_s:.0f} s"),
        ]
        print(table(("what", "count"), rows))
        fsck, history = self.ledger.manage("fsck"), self.ledger.manage("verify_history")
        wrong = {
            "a blind retry did not pay twice": blind != 2,
            "more than one effect": watch.most > 1,
            "nobody was killed": not self.kills.total(),
            "not one effect each": set(effects) != ours or effects.total() != self.operations,
            "not all confirmed": confirmed.count() != self.operations,
            "the database was not stopped so often": watch.stopped != self.stops,
            f"fsck: {fsck.stdout}{fsck.stderr}": fsck.returncode != 0,
            f"verify_history: {history.stdout}{history.stderr}": history.returncode != 0,
        }
        print(fsck.stdout.strip())
        return verdict(wrong)


def configuration(url: str, canary: str) -> dict[str, Any]:
    """How the ledger looks at Stripe. localstripe cannot list from a time on."""
    charge = {"/amount": "/amount", "/currency": "/currency", "/source": "/payment_method"}
    return {
        "api": url,
        "auth": {"env": "PROVIDER_STRIPE_KEY"},
        "objects": {
            CHARGE: {"kind": "charges", "content": charge},
            REFUND: {"kind": "refunds", "content": {"/amount": "/amount", "/charge": "/charge"}},
        },
        "canary": {"kind": "charges", "id": canary},
        "margin_s": None,
        "rate_per_s": 100,
    }


def steps(operations: int, card: str, draw: random.Random) -> list[dict[str, Any]]:
    """Charges, and for about half of them a refund somewhere later."""
    refunds = operations * 2 // 5
    todo: list[dict[str, Any]] = []
    for number in range(operations - refunds):
        args = {"amount": 1000 + number, "currency": "eur", "source": card}
        todo.append({"key": f"charge:{number}", "tool": CHARGE, "of": "", "args": args})
    for number in draw.sample(range(operations - refunds), refunds):
        refund = {
            "key": f"refund:{number}",
            "tool": REFUND,
            "of": f"charge:{number}",
            "args": {"amount": 1 + number},
        }
        after = next(place for place, step in enumerate(todo) if step["key"] == refund["of"])
        todo.insert(draw.randint(after + 1, len(todo)), refund)
    return todo
