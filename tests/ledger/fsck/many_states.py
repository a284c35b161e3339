"""A healthy ledger with work in every state, made by the real verbs; each piece bears a story's name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

from ledger import lifecycle
from ledger.deliveries import redeliver
from ledger.deliveries.claiming import claim_due
from ledger.deliveries.posting import Posted
from ledger.deliveries.recording import Ended, record_ends
from ledger.lifecycle import OutcomeReport, Told
from ledger.models import ApiKey, Attempt, BudgetAccount, Delivery, Destination, ParkedFact, User
from ledger.rules.canonical import canonical_bytes
from ledger.rules.deliveries import TryEnd
from ledger.rules.looked_up import LookedUpKind, Record
from ledger.transactions import database_clock, durable
from tests.support import make
from tests.support.cast import Cast, cast

MOVE = "fund.move"
PAY = "fee.pay"
COST = {"amount": "/amount", "unit": "/currency"}
TOOLS = {
    **make.TOOLS,
    MOVE: {"effect": "payment", "review": "always", "summary": "Move {amount}"},
    PAY: {"effect": "payment", "approvals": 1, "cost": COST, "summary": "Pay {amount} {currency}"},
}
AMOUNT = {"amount": 5}
FEE = {"amount": "12.50", "currency": "EUR"}
LIMITS: dict[str, int | Decimal | None] = {"tool_calls": 50, "EUR": Decimal("60.00")}
REFUSED: dict[str, Any] = {"no_effect": True, "error_class": "refused", "retryable": True}


class ManyStates:
    """`ids`: what faults and findings name: an attempt for each story, and some rows beside."""

    def __init__(self) -> None:
        self.ids: dict[str, Any] = {}
        self.cast: Cast = cast()
        make.policy(self.cast.tenant, by=self.cast.admin, tools=TOOLS)
        Destination.objects.create(
            tenant=self.cast.tenant, name="books", url="https://books.example/", ack="response"
        )
        durable(lambda: lifecycle.open_run(key=self.key, name="nightly", limits=LIMITS))
        self.told_by_agents()
        self.in_doubt()
        self.decided_by_people()
        self.paid_from_the_budget()
        self.beside_the_attempts()
        self.told_too_early()
        self.told_to_consumers()

    @property
    def key(self) -> ApiKey:
        return self.cast.key

    def told_by_agents(self) -> None:
        self.keep("recorded", make.recorded(self.key, make.TICKET, run="nightly"))
        self.keep("dispatched", self.dispatched())
        self.keep("confirmed", make.reported(self.key, self.dispatched(), "succeeded", result_ref="t-1"))
        declined = {"no_effect": True, "error_class": "declined"}
        self.keep("failed", make.reported(self.key, self.dispatched(), "failed", **declined))
        self.keep("retryable", make.reported(self.key, self.dispatched(), "failed", **REFUSED))
        before = self.keep("replaced", make.reported(self.key, self.dispatched(), "failed", **REFUSED))
        Attempt.objects.filter(pk=before.pk).update(send_again_at=database_clock())
        self.keep("resent", make.send(self.key, make.fresh(before)))
        cancelled = self.keep("cancelled", make.recorded(self.key))
        durable(
            lambda: lifecycle.cancel_operation(
                key=self.key, operation_id=cancelled.operation_id, reason="not needed any more"
            )
        )

    def in_doubt(self) -> None:
        self.keep("unknown", make.unknown(self.key, make.TICKET, run="nightly"))
        self.keep("review", make.for_a_person(self.key, run="nightly"))
        found = Record(reference="msg-7", content="same", state="done")
        self.keep("looked_up", make.looked_up(make.unknown(self.key), LookedUpKind.FOUND, found))
        ended = Record(reference="msg-8", content="same", state="failed")
        self.keep("failed_there", make.looked_up(make.unknown(self.key), LookedUpKind.FOUND, ended))
        first = self.keep("varied", make.dispatched(self.key))
        self.keep("variant", make.variant(self.key, first, {"to": "eve@example.org", "subject": "Invoice 7"}))

    def decided_by_people(self) -> None:
        doubtful = self.keep("doubtful", make.for_a_person(self.key, run="nightly"))
        self.approve("doubtful", self.cast.approver)
        self.keep("sent_again", make.send(self.key, make.fresh(doubtful)))
        self.keep("held", make.held(self.key))
        self.correct()
        self.keep("rejected", make.held(self.key))
        item = make.item_of(make.fresh(self.attempt("rejected"))).pk
        durable(lambda: lifecycle.reject(item_id=item, by=self.cast.operator, why="not wanted"))
        self.keep("confirmed_by_person", make.for_a_person(self.key))
        asked = make.item_of(self.attempt("confirmed_by_person")).pk
        durable(
            lambda: lifecycle.confirm_happened(
                item_id=asked, by=self.cast.operator, why="seen there", reference="t-9"
            )
        )
        self.keep("paid_by_word", make.unknown(self.key, make.REFUND))
        asked = make.item_of(self.attempt("paid_by_word")).pk
        for by in (self.cast.operator, self.cast.approver):
            durable(lambda by=by: lifecycle.confirm_happened(item_id=asked, by=by, why="seen there"))  # type: ignore[misc]
        self.keep("one_vote", make.recorded(self.key, MOVE, args=AMOUNT))
        self.approve("one_vote", self.cast.approver)
        for story in ("approved", "approved_sent"):
            self.keep(story, make.recorded(self.key, MOVE, args=AMOUNT, run="nightly"))
            self.approve(story, self.cast.approver)
            self.approve(story, self.cast.second_approver)
        sent = make.send(self.key, self.attempt("approved_sent"))
        make.reported(self.key, sent, "succeeded", result_ref="m-1")

    def paid_from_the_budget(self) -> None:
        for story in ("fee_sent", "fee_unknown", "fee_paid"):
            self.keep(story, make.dispatched(self.key, PAY, args=FEE, run="nightly"))
        with_fee = self.dispatched()
        make.reported(self.key, self.attempt("fee_unknown"), "unknown")
        more, foreign = {"EUR": Decimal("39.999")}, {"USD": Decimal("0.01")}
        make.reported(self.key, self.attempt("fee_paid"), "succeeded", result_ref="f-1", usage=more)
        make.reported(self.key, with_fee, "succeeded", result_ref="t-77", usage=foreign)

    def correct(self) -> None:
        """A sent attempt with a held successor: other arguments wait for an approval of their own."""
        mistaken = self.keep("mistaken", make.for_a_person(self.key))
        args = {"title": "Printer on fire, second floor"}
        item, raw = make.item_of(mistaken).pk, canonical_bytes(args)
        by = self.cast.operator
        durable(
            lambda: lifecycle.relink_arguments(item_id=item, by=by, why="floor", args_bytes=raw, args=args)
        )
        self.keep("corrected", Attempt.objects.get(descends_from=mistaken))

    def beside_the_attempts(self) -> None:
        other = self.cast.other_tenant
        foreign = make.agent(other, self.cast.stranger)
        elsewhere = self.keep("elsewhere", make.recorded(make.key(foreign), operation_key="elsewhere"))
        for story in ("approved", "approved_sent"):
            self.ids[f"{story}_approval"] = self.attempt(story).approvals.get().pk
        self.ids |= {
            "tenant": self.cast.tenant.pk,
            "other_agent": foreign.pk,
            "other_operation": elsewhere.operation_id,
            "delivery": self.subject("delivery:confirmed"),
            "euros": BudgetAccount.objects.get(unit="EUR").pk,
            "dollars": BudgetAccount.objects.get(unit="USD").pk,
            "account": BudgetAccount.objects.get(unit="tool_calls", limit=50).pk,
        }
        for story in ("confirmed", "recorded"):
            self.ids[f"operation_{story}"] = self.attempt(story).operation_id

    def told_too_early(self) -> None:
        for story in ("parked", "dismissed", "early"):
            self.tell(story)
        self.ids["parked_fact"] = self.fact("parked").pk
        self.ids["dismissed_fact"] = self.fact("dismissed").pk
        durable(
            lambda: lifecycle.dismiss_parked(
                fact_id=self.ids["dismissed_fact"], by=self.cast.operator, why="a test"
            )
        )
        self.keep("early", make.recorded(self.key, make.TICKET, operation_key="early"))
        self.ids["joined_fact"] = self.fact("early").pk

    def told_to_consumers(self) -> None:
        """A delivery in every state, one of them acknowledged, sent again by a person and received again."""
        for story in ("acked", "sent", "dead", "held_back"):
            self.keep(story, make.confirmed(self.key, make.TICKET))
            self.ids[f"delivery_{story}"] = self.subject(f"delivery:{story}")
        elsewhere = Destination.objects.create(
            tenant=self.cast.other_tenant, name="books", url="https://books.example/", ack="response"
        )
        self.ids |= {"other_destination": elsewhere.pk, "other_tenant": self.cast.other_tenant.pk}
        self.delivered("sent", TryEnd.UNAVAILABLE)
        self.delivered("acked", TryEnd.NO_ANSWER, TryEnd.NOT_SENT, TryEnd.RECEIVED)
        by, acked = self.cast.operator, self.ids["delivery_acked"]
        durable(lambda: redeliver(delivery_id=acked, by=by, why="lost there"))
        self.delivered("acked", TryEnd.RECEIVED)
        self.delivered("dead", TryEnd.NOT_CONNECTED, TryEnd.BLOCKED)
        held = Delivery.objects.filter(pk=self.ids["delivery_held_back"])
        held.update(next_at=None, held_at=database_clock())

    def delivered(self, story: str, *ends: TryEnd) -> None:
        """So its tries ended, one after the other, whatever its schedule."""
        for end in ends:
            Delivery.objects.update(lease_until=None)
            waiting = Delivery.objects.filter(pk=self.ids[f"delivery_{story}"])
            waiting.update(next_at=database_clock() - timedelta(days=1))
            Destination.objects.update(rests_until=None, most_at_once=1)
            (claim,) = claim_due(at_most=1)
            assert claim.delivery_id == self.ids[f"delivery_{story}"]
            ended = [Ended(claim, Posted(end))]
            durable(lambda ended=ended: record_ends(ended))  # type: ignore[misc]

    def tell(self, operation_key: str) -> None:
        report = OutcomeReport(worker_id="w", outcome="succeeded", result_ref="r-1")
        told = Told(operation_key=operation_key)
        durable(lambda: lifecycle.take_outcome(key=self.key, told=told, report=report))

    def fact(self, operation_key: str) -> ParkedFact:
        return ParkedFact.objects.get(operation_key=operation_key)

    def keep(self, story: str, attempt: Attempt) -> Attempt:
        self.ids[story] = attempt.pk
        return attempt

    def attempt(self, story: str) -> Attempt:
        return make.fresh(Attempt(pk=self.ids[story]))

    def dispatched(self) -> Attempt:
        return make.dispatched(self.key, make.TICKET, run="nightly")

    def approve(self, story: str, by: User) -> None:
        item = make.item_of(self.attempt(story))
        durable(lambda: lifecycle.approve(item_id=item.pk, by=by, why="seen and wanted"))

    def subject(self, named: str) -> str:
        """What a finding names: `vote:story`, `operation:story`, …, a story's own row, or a glob as it is."""
        kind, _, story = named.rpartition(":")
        if story not in self.ids:
            return named
        return _SUBJECTS[kind](self.attempt(story)) if kind else str(self.ids[story])

    def operation_of(self, named: str) -> str:
        """The operation of what a finding names."""
        return self.attempt(named.rpartition(":")[2].removesuffix("_approval")).operation_id


_SUBJECTS: dict[str, Callable[[Attempt], str]] = {
    "operation": lambda attempt: attempt.operation_id,
    "attempt": lambda attempt: f"ledger_attempt:{attempt.pk}",
    "item": lambda attempt: attempt.review_items.get().pk,
    "statement": lambda attempt: attempt.statements.get().decision_id,
    "vote": lambda attempt: attempt.votes.order_by("pk")[0].decision_id,
    "approval": lambda attempt: f"ledger_approval:{attempt.approvals.get().pk}",
    "delivery": lambda attempt: attempt.operation.deliveries.get().pk,
    "event": lambda attempt: attempt.events.order_by("sequence")[0].pk,
}
