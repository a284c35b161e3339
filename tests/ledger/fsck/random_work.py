"""Agents, look-ups, operators and time doing anything at all to a few operations, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db.models import F

from ledger import lifecycle
from ledger.lifecycle import DecisionRefused, LeaveGiven
from ledger.models import Attempt, Destination, ReviewItem
from ledger.reconciliation import sweep_once
from ledger.rules.canonical import canonical_bytes
from ledger.rules.looked_up import LookedUp, LookedUpKind, Record
from ledger.transactions import database_clock, durable
from tests.support import make
from tests.support.cast import Cast

LONG_AGO = timedelta(days=8)
COST = {"cost": {"amount": "/amount", "unit": "/currency"}}
TOOLS: dict[str, dict[str, Any]] = {
    **{name: dict(rule) for name, rule in make.TOOLS.items()},
    make.REFUND: {**make.TOOLS[make.REFUND], **COST},
}


class RandomWork:
    """One step at a time; what is refused, by a verb or by the database itself, is a step as well.

    `done` is the plan, to be shown on failure.
    """

    def __init__(self, cast: Cast, seed: int) -> None:
        self.cast, self.draw, self.done = cast, random.Random(seed), list[str]()
        make.policy(cast.tenant, by=cast.admin, tools=TOOLS)
        limits: dict[str, int | Decimal | None] = {"tool_calls": 30, "EUR": Decimal("900.50")}
        durable(lambda: lifecycle.open_run(key=cast.key, name="nightly", limits=limits))
        Destination.objects.create(
            tenant=cast.tenant, name="books", url="https://books.example/", ack="response"
        )
        self.steps: list[Callable[[], str]] = [
            self.post, self.post, self.ask_leave, self.ask_leave, self.report, self.report, self.name_request,
            self.look_up, self.look_up, self.decide, self.decide, self.decide, self.approve, self.approve,
            self.correct, self.cancel, self.let_time_pass, self.end_back_off, self.publish,
            self.look_up_absent,
        ]  # fmt: skip

    def step(self) -> None:
        work = self.draw.choice(self.steps)
        try:
            said = work()
        except DecisionRefused as refused:
            said = f"refused: {refused.code}"
        self.done.append(f"{work.__name__}: {said}")

    def post(self) -> str:
        tool = self.draw.choice(list(make.TOOLS))
        args = {**make.ARGS[tool], "variant": self.draw.randrange(2)}
        key = f"{tool}:{self.draw.randrange(3)}"
        run = self.draw.choice(["nightly", ""])
        return str(
            make.posted(self.cast.key, make.intent_of(tool, args=args, operation_key=key, run=run)).kind
        )

    def ask_leave(self) -> str:
        attempt = self.attempt()
        if attempt is None:
            return "nothing"
        answer = make.ask_leave(self.cast.key, attempt)
        return f"given {answer.attempt.pk}" if isinstance(answer, LeaveGiven) else str(answer.problem)

    def report(self) -> str:
        attempt = self.attempt()
        if attempt is None:
            return "nothing"
        outcome = self.draw.choice(["succeeded", "failed", "unknown"])
        report: dict[str, Any] = {}
        if outcome == "succeeded" and self.coin():
            report["result_ref"] = self.reference()
        if outcome == "failed":
            error_class = self.draw.choice(["declined", "refused", "timeout"])
            report |= {"no_effect": self.coin(), "retryable": self.coin(), "error_class": error_class}
        if self.coin():
            report["usage"] = {"tool_calls": self.draw.randrange(1, 4), "tokens": 7}
            if self.coin():
                report["usage"] |= {"EUR": Decimal(self.draw.choice(["0", "99.999", "240"]))}
        return f"{attempt.pk} {outcome} {make.reported(self.cast.key, attempt, outcome, **report).state}"

    def name_request(self) -> str:
        attempt = self.attempt()
        if attempt is None:
            return "nothing"
        named = self.reference()
        durable(
            lambda: lifecycle.record_provider_request(
                key=self.cast.key, attempt_id=attempt.pk, worker_id="worker-1", provider_request_id=named
            )
        )
        return f"{attempt.pk} {named}"

    def look_up(self) -> str:
        attempt = self.attempt(dispatched_at__isnull=False)
        if attempt is None:
            return "nothing"
        kind = self.draw.choice(list(LookedUpKind))
        found = (self.record(), self.record()) if self.coin() and self.coin() else (self.record(),)
        answer = LookedUp(kind=kind, records=found if kind is LookedUpKind.FOUND else ())
        epoch = attempt.lookup_epoch + self.draw.choice([0, 0, 0, 1])
        self.answer(attempt, answer, epoch=epoch)
        return f"{attempt.pk} {kind} {make.fresh(attempt).state}"

    def answer(self, attempt: Attempt, looked_up: LookedUp, *, epoch: int) -> None:
        """One answer, a minute after the one before."""
        make.waited(Attempt.objects.filter(pk=attempt.pk))
        durable(
            lambda: lifecycle.apply_answer(
                attempt_id=attempt.pk,
                epoch=epoch,
                asked_at=database_clock(),
                provider=None,
                looked_up=looked_up,
            )
        )

    def decide(self) -> str:
        item, by = self.item(), self.cast.operator
        if item is None:
            return "nothing"
        named = self.reference()
        decisions: list[Callable[[], object]] = [
            lambda: lifecycle.reject(item_id=item.pk, by=by, why="no", what="did_not"),
            lambda: lifecycle.reject(item_id=item.pk, by=by, why="no", what="not_known"),
            lambda: lifecycle.reject(item_id=item.pk, by=by, why="no", what="happened", reference=named),
            lambda: lifecycle.confirm_happened(item_id=item.pk, by=by, why="seen", reference=named),
            lambda: lifecycle.confirm_did_not_happen(item_id=item.pk, by=by, why="not there"),
            lambda: lifecycle.recheck(item_id=item.pk, by=by, why="again"),
            lambda: lifecycle.relink_record(item_id=item.pk, by=by, why="that one", reference=named),
            lambda: self.answer_conflict(item, named),
        ]
        number = self.draw.randrange(len(decisions))
        self.done.append(f"decision {number} on {item.attempt_id} {item.reason}")
        durable(decisions[number])
        return make.fresh(item.attempt).state

    def answer_conflict(self, item: ReviewItem, named: str) -> object:
        answer = self.draw.choice(["happened", "duplicate", "stands"])
        by = self.cast.operator
        return lifecycle.decide_conflict(item_id=item.pk, by=by, why="looked", answer=answer, reference=named)

    def approve(self) -> str:
        item = self.item()
        if item is None:
            return "nothing"
        by = self.draw.choice([self.cast.approver, self.cast.second_approver, self.cast.owner])
        new_key = self.coin()
        durable(lambda: lifecycle.approve(item_id=item.pk, by=by, why="wanted", new_provider_key=new_key))
        return f"{item.attempt_id} by {by}"

    def correct(self) -> str:
        item = self.item()
        if item is None:
            return "nothing"
        args = {"corrected": self.draw.randrange(4)}
        durable(
            lambda: lifecycle.relink_arguments(
                item_id=item.pk,
                by=self.cast.operator,
                why="typo",
                args_bytes=canonical_bytes(args),
                args=args,
            )
        )
        return item.attempt_id

    def cancel(self) -> str:
        attempt = self.attempt()
        if attempt is None or self.draw.randrange(4):
            return "nothing"
        durable(
            lambda: lifecycle.cancel_operation(
                key=self.cast.key, operation_id=attempt.operation_id, reason="no more"
            )
        )
        return attempt.operation_id

    def let_time_pass(self) -> str:
        """Leases, waits and approvals of one attempt are over."""
        attempt = self.attempt()
        if attempt is None:
            return "nothing"
        Attempt.objects.filter(pk=attempt.pk).update(lease_until=F("lease_until") - LONG_AGO)
        return f"{attempt.pk} {sweep_once()}"

    def end_back_off(self) -> str:
        Attempt.objects.filter(send_again_at__isnull=False).update(
            send_again_at=F("send_again_at") - LONG_AGO
        )
        return "all"

    def publish(self) -> str:
        """Another rule for the tickets: reviewed first or not, dearer or not."""
        rule = {**make.TOOLS[make.TICKET], "review": self.draw.choice(["always", "on_unknown"])}
        if self.coin():
            rule["approvals"] = 2
        make.policy(self.cast.tenant, by=self.cast.admin, tools={**TOOLS, make.TICKET: rule})
        return str(rule)

    def look_up_absent(self) -> str:
        """Asked until nothing more is in doubt: proven absent, for what can be looked up."""
        attempt = self.attempt(state__in=["UNKNOWN", "MANUAL_REVIEW"], dispatched_at__isnull=False)
        if attempt is None:
            return "nothing"
        for _ in range(2):
            self.answer(attempt, LookedUp(kind=LookedUpKind.ABSENT), epoch=attempt.lookup_epoch)
        return f"{attempt.pk} {make.fresh(attempt).state}"

    def attempt(self, **having: object) -> Attempt | None:
        found = list(
            Attempt.objects.filter(tenant=self.cast.tenant, **having).order_by("operation_id", "number")
        )
        return make.fresh(self.draw.choice(found)) if found else None

    def item(self) -> ReviewItem | None:
        found = list(ReviewItem.objects.filter(closed_at=None).order_by("pk"))
        return self.draw.choice(found) if found else None

    def record(self) -> Record:
        content = self.draw.choice(["same", "same", "other"])
        state = self.draw.choice(["done", "done", "in_progress", "failed", "reversed"])
        return Record(reference=self.reference(), content=content, state=state)  # type: ignore[arg-type]

    def reference(self) -> str:
        return f"ref-{self.draw.randrange(4)}"

    def coin(self) -> bool:
        return self.draw.random() < 0.5
