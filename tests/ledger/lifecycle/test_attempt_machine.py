"""The attempt machine on PostgreSQL against the small model beside it: whatever is done in whatever order.

Longer runs: LEDGER_MACHINE_EXAMPLES and LEDGER_MACHINE_STEPS in the environment.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from decimal import Decimal
from typing import Any, ClassVar

import pytest
from django.db import connection
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from ledger import lifecycle
from ledger.models import Approval, Attempt, Operation, ReviewItem
from ledger.queries.invariants import findings
from ledger.rules.directive import Directive
from tests.ledger.lifecycle.machine import decisions, facts, model
from tests.ledger.lifecycle.machine.facts import RECEIPT_IS_EVIDENCE, Said, Seen
from tests.ledger.lifecycle.machine.real import Real, undone
from tests.ledger.lifecycle.machine.values import ASKED, Tool, Tried, World
from tests.support.cast import Cast, cast

TOOLS = {
    "idempotent": Tool(),
    "without look-up": Tool(lookup=False, idempotent=False),
    "not idempotent": Tool(idempotent=False, approvals=2),
    "confirmed by look-up": Tool(confirm_by_lookup=True),
    "seen first": Tool(lookup=False, review_always=True),
    "seen first by two": Tool(review_always=True, approvals=2),
    "read": Tool(read=True, idempotent=False),
    "read seen first": Tool(read=True, idempotent=False, review_always=True),
}

BOUNDED = settings(
    max_examples=int(os.environ.get("LEDGER_MACHINE_EXAMPLES", "12")),
    stateful_step_count=int(os.environ.get("LEDGER_MACHINE_STEPS", "25")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.reuse, Phase.generate, Phase.shrink),
    print_blob=True,
)

which = st.sampled_from([-1, -1, -1, 0, 1, 2])
names = st.sampled_from(["r1", "r2", "r3"])
maybe_named = st.sampled_from([*[""] * 6, "r1", "r2", "r3"])
contents = st.sampled_from([*["a"] * 6, "b", "c"])
records = st.tuples(
    names,
    st.sampled_from(["same", "same", "same", "other"]),
    st.sampled_from(["done", "done", "in_progress", "failed", "reversed"]),
)
answers = st.sampled_from(
    [Seen("absent")] * 12 + [Seen("unavailable"), Seen("adapter_failed"), Seen("no_lookup")]
) | st.builds(Seen, st.just("found"), st.lists(records, min_size=1, max_size=2).map(tuple))
reports = st.builds(
    Said,
    outcome=st.sampled_from(["succeeded", *["failed"] * 2, *["unknown"] * 6]),
    result=maybe_named,
    request=maybe_named,
    definite=st.booleans(),
    retryable=st.sampled_from([True, True, True, False]),
    tool_calls=st.sampled_from([0, 0, 0, 3]),
)


PLAN: list[str] = []
ARGUMENTS: dict[str, dict[str, st.SearchStrategy[Any]]] = {}


def action(weight: int, **arguments: st.SearchStrategy[Any]) -> Callable[[Any], Any]:
    """One thing that can happen, so often among the others."""

    def listed(method: Any) -> Any:
        PLAN.extend([method.__name__] * weight)
        ARGUMENTS[method.__name__] = arguments
        return method

    return listed


class AttemptMachine(RuleBasedStateMachine):
    """Each rule is done to the ledger and to the model, and both must be where the other is."""

    people: ClassVar[Cast]
    tool: ClassVar[Tool]

    def __init__(self) -> None:
        super().__init__()
        self.block = undone()
        self.block.__enter__()

    def teardown(self) -> None:
        try:
            broken = list(findings())
        finally:
            self.block.__exit__(None, None, None)
        assert broken == []

    @initialize(
        limit=st.sampled_from([None, None, 2]),
        money_limit=st.sampled_from([None, None, Decimal("2.50"), Decimal("4.99")]),
    )
    def begin(self, limit: int | None, money_limit: Decimal | None) -> None:
        self.real = Real(self.people, self.tool, limit=limit, money_limit=money_limit)
        self.model = model.Operation(self.tool, World(limit=limit, money_limit=money_limit))
        self.post("a")

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        """One rule, so that no example does without a whole kind of step."""
        name = data.draw(st.sampled_from(PLAN))
        arguments = {word: data.draw(strategy) for word, strategy in ARGUMENTS[name].items()}
        getattr(self, name)(**arguments)

    def each(self, number: int) -> tuple[Attempt, Tried]:
        attempts = self.real.attempts()
        return attempts[number % len(attempts)], self.model.tried[number % len(attempts)]

    # --- agents --------------------------------------------------------------------------------------------

    @action(4, content=contents)
    def post(self, content: str) -> None:
        assert self.real.post(content) == self.model.post(content)

    @action(10, number=which)
    def ask_leave(self, number: int) -> None:
        attempt, tried = self.each(number)
        given, directive = self.real.leave(attempt)
        expected = self.model.leave(tried)
        assert given == (expected is not None)
        assert not given or directive == Directive.DISPATCH

    @action(8, number=which, said=reports)
    def report(self, number: int, said: Said) -> None:
        attempt, tried = self.each(number)
        said = Said(said.outcome, said.result, said.request, said.definite and said.outcome == "failed",
                    said.retryable, said.tool_calls)  # fmt: skip
        for _ in range(2):  # the same report again changes nothing
            self.real.report(attempt, said, words=f"after {attempt.operation.event_count}")
        facts.report(self.model, tried, said)

    @action(2, number=which, request=names)
    def name_request(self, number: int, request: str) -> None:
        attempt, tried = self.each(number)
        self.real.name_request(attempt, request)
        facts.name_request(self.model, tried, request)

    @action(1)
    def cancel(self) -> None:
        self.real.cancel()
        self.model.cancel()

    # --- providers and time --------------------------------------------------------------------------------

    @action(6, number=which, seen=answers, stale=st.sampled_from([False, False, False, True]))
    def look_up(self, number: int, seen: Seen, stale: bool) -> None:
        attempt, tried = self.each(number)
        if tried.sent:
            self.real.look_up(attempt, seen, stale=stale)
            facts.look_up(self.model, tried, seen, stale=stale)

    @action(4, number=which)
    def absent_for_long(self, number: int) -> None:
        for _ in range(2):
            self.let_time_pass(number)
            self.look_up(number, Seen("absent"), stale=False)

    @action(4, number=which)
    def let_time_pass(self, number: int) -> None:
        attempt, tried = self.each(number)
        self.real.let_time_pass(attempt)
        tried.spaced, tried.resting = True, False
        tried.settled = tried.settled or (tried.sent and tried.state != "DISPATCHED")

    @action(2, number=which)
    def end_lease(self, number: int) -> None:
        attempt, tried = self.each(number)
        self.real.end_lease(attempt)
        if tried.state == "DISPATCHED":
            self.model.lose(tried)
        self.model.sweep()

    @action(1, number=which)
    def agent_never_comes(self, number: int) -> None:
        attempt, tried = self.each(number)
        self.real.never_come(attempt)
        if tried.state in ("INTENT_RECORDED", "FAILED_RETRYABLE") and tried.approval is None:
            self.model.go(tried, "FAILED")
            tried.reason = ""
        self.model.sweep()

    @action(1, number=which)
    def expire_approval(self, number: int) -> None:
        attempt, tried = self.each(number)
        self.real.expire_approval(attempt)
        if tried.approval is not None:
            self.model.void(tried)
            if tried.state in ASKED and tried.reason not in RECEIPT_IS_EVIDENCE:
                tried.reason, tried.conflict = "approval_expired", False
        self.model.sweep()

    # --- people --------------------------------------------------------------------------------------------

    @action(5, number=which, second=st.booleans())
    def approve(self, number: int, second: bool) -> None:
        attempt, tried = self.each(number)
        by = self.people.second_approver if second else self.people.approver
        had_item = ReviewItem.objects.filter(attempt=attempt).exists()
        possible = self.real.decide(attempt, lifecycle.approve, by)
        assert possible == (had_item and decisions.approve(self.model, tried, by.username))

    @action(4, number=which)
    def approve_by_both(self, number: int) -> None:
        self.approve(number, second=False)
        self.approve(number, second=True)

    @action(1, number=which, what=st.sampled_from(["happened", "did_not", "not_known"]), name=names)
    def reject(self, number: int, what: str, name: str) -> None:
        self._decide(
            number,
            lambda a: self.real.decide(a, lifecycle.reject, self.people.operator, what=what, reference=name),
            lambda a: decisions.reject(self.model, a, what, name),
        )

    @action(1, number=which, name=names)
    def confirm_happened(self, number: int, name: str) -> None:
        by = self.people.operator
        self._decide(
            number,
            lambda a: self.real.decide(a, lifecycle.confirm_happened, by, reference=name),
            lambda a: decisions.happened(self.model, a, name),
        )

    @action(1, number=which)
    def confirm_did_not_happen(self, number: int) -> None:
        self._decide(
            number,
            lambda a: self.real.decide(a, lifecycle.confirm_did_not_happen, self.people.operator),
            lambda a: decisions.did_not_happen(self.model, a),
        )

    @action(2, number=which)
    def recheck(self, number: int) -> None:
        self._decide(
            number,
            lambda a: self.real.decide(a, lifecycle.recheck, self.people.operator),
            lambda a: decisions.recheck(self.model, a),
        )

    @action(1, number=which, name=names)
    def name_record(self, number: int, name: str) -> None:
        by = self.people.operator
        self._decide(
            number,
            lambda a: self.real.decide(a, lifecycle.relink_record, by, reference=name),
            lambda a: decisions.name_record(self.model, a, name),
        )

    @action(2, number=which, content=st.sampled_from("abcd"))
    def correct(self, number: int, content: str) -> None:
        self._decide(
            number,
            lambda a: self.real.correct(a, content, self.people.operator),
            lambda a: decisions.correct(self.model, a, content),
        )

    @action(3, number=which, answer=st.sampled_from(["happened", "duplicate", "stands"]), name=names)
    def decide_conflict(self, number: int, answer: str, name: str) -> None:
        by, decide = self.people.operator, lifecycle.decide_conflict
        self._decide(
            number,
            lambda a: self.real.decide(a, decide, by, answer=answer, reference=name),
            lambda a: decisions.decide_conflict(self.model, a, answer, name),
        )

    def _decide(
        self, number: int, really: Callable[[Attempt], bool], expected: Callable[[Tried], bool]
    ) -> None:
        attempt, tried = self.each(number)
        assert really(attempt) == expected(tried)

    # --- the world -----------------------------------------------------------------------------------------

    @action(2, version=st.sampled_from(["first", "first", "changed", "review", "none"]))
    def publish(self, version: str) -> None:
        if version == "review" and self.tool.review_always:
            version = "first"  # the very same rule
        self.real.publish(version)
        self.model.world.since += version != self.model.world.rule
        self.model.world.rule = version

    @action(1, live=st.sampled_from([True, True, False]))
    def key(self, live: bool) -> None:
        self.real.set_key(live=live)
        self.model.world.key_live = live

    @action(1, active=st.sampled_from([True, True, False]))
    def tenant(self, active: bool) -> None:
        self.real.set_tenant(active=active)
        self.model.world.tenant_active = active

    # --- what must hold after every step -------------------------------------------------------------------

    @invariant()
    def both_are_where_the_other_is(self) -> None:
        stored = [
            (a.number, a.state, a.dispatched_at is not None, a.maybe_sent, a.was_sent and a.is_held)
            for a in self.real.attempts()
        ]
        expected = [(a.number, a.state, a.dispatched, a.maybe_sent, False) for a in self.model.tried]
        assert stored == expected
        assert Operation.objects.get().outcome == self.model.outcome()

    @invariant()
    def every_open_question_has_one_item_with_an_owner(self) -> None:
        open_items = ReviewItem.objects.filter(closed_at=None).order_by("attempt__number")
        expected = [(a.number, a.conflict) for a in self.model.tried if a.state in ASKED or a.conflict]
        assert [
            (item.attempt.number, item.reason == "conflicting_evidence")
            for item in open_items.select_related("attempt")
        ] == expected
        assert all(item.owner_group_id for item in open_items)

    @invariant()
    def only_these_approvals_wait(self) -> None:
        waiting = Approval.objects.filter(used_at=None, voided_at=None).order_by("attempt__number")
        expected = [a.number for a in self.model.tried if a.approval is not None]
        assert list(waiting.values_list("attempt__number", flat=True)) == expected

    @invariant()
    def the_budget_is_what_was_reserved_and_spent(self) -> None:
        account, money = self.real.account("tool_calls"), self.real.account("EUR")
        tried = self.model.tried
        assert (money.reserved, money.spent) == (self.model.money_reserved, self.model.money_spent)
        assert (account.reserved, account.spent) == (
            sum(a.reserved for a in tried),
            sum(a.posted for a in tried),
        )

    @invariant()
    def the_database_agrees_at_once(self) -> None:
        """Constraints that are asked at commit are asked here, for nothing is committed."""
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")

    @invariant()
    def settlements_are_the_entries_into_an_outcome(self) -> None:
        operation = Operation.objects.get()
        settled = operation.settlements.order_by("number")
        events = operation.events.filter(kind="operation.settled").order_by("sequence")
        assert [s.number for s in settled] == list(range(1, operation.settlements_count + 1))
        assert [s.event_id for s in settled] == [event.pk for event in events]


@pytest.mark.django_db
@pytest.mark.parametrize("name", TOOLS)
def test_the_ledger_follows_the_domain(name: str) -> None:
    machine: Any = type(f"Machine of {name}", (AttemptMachine,), {"tool": TOOLS[name], "people": cast()})
    run_state_machine_as_test(machine, settings=BOUNDED)
