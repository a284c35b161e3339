"""Everything at once on connections of its own: every order ends in one of the few right ends.

Each race is run again and again; whoever has to wait longer than the database allows is told `Busy`, and
nothing else may be raised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from ledger import lifecycle
from ledger.lifecycle import (
    Decided,
    DecisionRefused,
    IntentAnswer,
    IntentKind,
    LeaveGiven,
    LeaveRefused,
    OutcomeReport,
)
from ledger.models import Approval, ApprovalUse, Attempt, BudgetAccount, LookUp, Operation, User
from ledger.policies import publish_policy
from ledger.queries.invariants import findings
from ledger.reconciliation import claims
from ledger.rules.looked_up import LookedUp, LookedUpKind, Record
from ledger.rules.states import State
from ledger.transactions import Busy, database_clock, durable
from tests.support import make, races
from tests.support.cast import Cast, cast
from tests.support.races import Work

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 12
WIDE = 20
TICKETS = {make.TICKET: {"effect": "write"}}


@pytest.fixture
def people(transactional_db: None) -> Iterator[Cast]:
    """The cast; whatever raced, the ledger is sound afterwards."""
    yield cast()
    assert list(findings()) == []


def at_once(*works: Work) -> list[Any]:
    """Do all of it at the same moment, each in a transaction of its own; the answers in order."""
    return races.at_once(*[partial(durable, work) for work in works])


def only(kind: type[Any], answers: list[Any]) -> list[Any]:
    return [answer for answer in answers if isinstance(answer, kind)]


def post(people: Cast, intent: lifecycle.Intent) -> Work:
    return lambda: lifecycle.record_intent(key=people.key, intent=intent)


def leave(people: Cast, attempt: Attempt, worker: str) -> Work:
    return lambda: lifecycle.give_leave(
        key=people.key,
        attempt_id=attempt.pk,
        worker_id=worker,
        leave_id=worker,
        args_hash=attempt.args_hash,
    )


def report(people: Cast, attempt: Attempt, outcome: str, **said: Any) -> Work:
    told = OutcomeReport(worker_id="worker-1", outcome=outcome, **said)
    return lambda: lifecycle.record_outcome(key=people.key, attempt_id=attempt.pk, report=told)


def approve(attempt: Attempt, by: User) -> Work:
    item = make.item_of(attempt)
    return lambda: lifecycle.approve(item_id=item.pk, by=by, why="checked")


def approved(people: Cast) -> Attempt:
    """A sent attempt without look-up that waits for a new, approved send."""
    attempt = make.for_a_person(people.key)
    durable(approve(attempt, people.approver))
    return make.fresh(attempt)


@pytest.mark.parametrize("round_", range(4))
def test_equal_intents_are_one_attempt(people: Cast, round_: int) -> None:
    intent = make.intent_of(operation_key="the-same", run="nightly")
    answers = only(IntentAnswer, at_once(*[post(people, intent)] * WIDE))
    assert Counter(answer.kind for answer in answers)[IntentKind.CREATED] == 1
    assert {answer.kind for answer in answers} <= {IntentKind.CREATED, IntentKind.REPLAYED}
    assert len({answer.standing.attempt.pk for answer in answers}) == 1
    assert (Operation.objects.count(), Attempt.objects.count()) == (1, 1)


@pytest.mark.parametrize("round_", range(4))
def test_different_contents_under_one_key_are_one_live_and_one_held(people: Cast, round_: int) -> None:
    intents = [
        make.intent_of(args={"to": f"{number}@example.org"}, operation_key="one-key")
        for number in range(WIDE)
    ]
    kinds = Counter(
        answer.kind for answer in only(IntentAnswer, at_once(*[post(people, i) for i in intents]))
    )
    assert kinds[IntentKind.CREATED] == 1
    assert set(kinds) <= {IntentKind.CREATED, IntentKind.KEY_REUSED}
    first, held = Attempt.objects.order_by("number")
    assert (first.state, held.state, held.reason) == ("INTENT_RECORDED", "MANUAL_REVIEW", "arguments_changed")


def test_leave_is_given_once(people: Cast) -> None:
    for _ in range(ROUNDS):
        attempt = make.recorded(people.key)
        answers = at_once(*[leave(people, attempt, f"worker-{number}") for number in range(4)])
        given = only(LeaveGiven, answers)
        assert len(given) == 1
        assert {refused.problem for refused in only(LeaveRefused, answers)} <= {"in-flight"}
        assert make.fresh(attempt).worker_id == given[0].attempt.worker_id


def test_the_same_life_asking_twice_at_once_has_one_leave(people: Cast) -> None:
    for _ in range(ROUNDS):
        attempt = make.recorded(people.key)
        given = only(LeaveGiven, at_once(*[leave(people, attempt, "worker-1")] * 3))
        assert sorted(answer.replayed for answer in given) == [False, True, True][: len(given)]
        assert attempt.events.filter(kind="attempt.dispatched").count() == 1


def test_an_approved_send_is_opened_once(people: Cast) -> None:
    for _ in range(ROUNDS):
        attempt = approved(people)
        answers = at_once(*[leave(people, attempt, f"worker-{number}") for number in range(4)])
        assert len(only(LeaveGiven, answers)) == 1
        assert attempt.operation.attempts.count() == 2
        assert ApprovalUse.objects.filter(approval__attempt=attempt).count() == 1


def test_two_yes_where_two_are_needed_make_one_approval(people: Cast) -> None:
    rule = {**make.TOOLS[make.TICKET], "approvals": 2}
    make.policy(people.tenant, by=people.admin, tools={make.TICKET: rule})
    for _ in range(ROUNDS):
        attempt = make.for_a_person(people.key)
        answers = at_once(approve(attempt, people.approver), approve(attempt, people.second_approver))
        assert len(only(Decided, answers)) == 2
        assert Approval.objects.get(attempt=attempt).votes.count() == 2


def test_a_yes_against_a_no(people: Cast) -> None:
    """Where the no wins nothing is ever sent; where the yes was first, the no ends it or comes too late."""
    for _ in range(ROUNDS):
        attempt = make.for_a_person(people.key)
        item = make.item_of(attempt)
        yes, no = at_once(
            approve(attempt, people.approver),
            lambda item=item: lifecycle.reject(  # type: ignore[misc]
                item_id=item.pk, by=people.operator, why="no", what="did_not"
            ),
        )
        assert isinstance(no, Decided)
        assert isinstance(yes, Decided | DecisionRefused)
        assert make.fresh(attempt).state == State.FAILED
        assert not Approval.objects.filter(attempt=attempt, voided_at=None).exists()
        assert not isinstance(durable(leave(people, attempt, "late")), LeaveGiven)


def test_a_late_success_against_leave_of_an_approved_send(people: Cast) -> None:
    """Either it is confirmed and nothing is sent, or one send was first and the success contradicts it."""
    ends: Counter[str] = Counter()
    for _ in range(ROUNDS * 2):
        attempt = approved(people)
        given, told = at_once(
            leave(people, attempt, "w"), report(people, attempt, "succeeded", result_ref="t_1")
        )
        assert not isinstance(told, Busy)
        states = list(attempt.operation.attempts.order_by("number").values_list("state", flat=True))
        if isinstance(given, LeaveGiven):
            assert states == ["SUPERSEDED", "DISPATCHED"]
            assert make.item_of(attempt).reason == "conflicting_evidence"
        else:
            assert states == ["OUTCOME_CONFIRMED"]
            assert not Approval.objects.filter(attempt=attempt, used_at=None, voided_at=None).exists()
        ends[type(given).__name__] += 1
    assert sum(ends.values()) == ROUNDS * 2


def test_two_reconcilers_never_claim_one_attempt(people: Cast) -> None:
    for _ in range(ROUNDS):
        expected = {make.unknown(people.key).pk for _ in range(3)}
        (lane,) = claims.due_lanes()
        claimed = at_once(*[lambda lane=lane: claims._claim(lane, 2)] * 4)
        taken = [claim.attempt_id for some in claimed for claim in some]
        assert taken
        assert len(taken) == len(set(taken))
        assert set(taken) <= expected
        Attempt.objects.filter(state=State.UNKNOWN).update(next_check_at="2100-01-01T00:00:00Z")


def test_the_same_answer_applied_twice_at_once_is_one_confirmation(people: Cast) -> None:
    found = LookedUp(LookedUpKind.FOUND, (Record(reference="re_1", content="same", state="done"),))
    for _ in range(ROUNDS):
        attempt = make.unknown(people.key)
        apply = [
            lambda attempt=attempt, epoch=epoch: lifecycle.apply_answer(
                attempt_id=attempt.pk, epoch=epoch, asked_at=database_clock(), provider=None, looked_up=found
            )
            for epoch in (0, 0, 1)
        ]
        at_once(*apply)
        assert make.fresh(attempt).state == State.OUTCOME_CONFIRMED
        assert attempt.operation.settlements.count() == 1
        assert LookUp.objects.filter(attempt=attempt).count() == 3


def test_cancel_against_leave(people: Cast) -> None:
    for _ in range(ROUNDS):
        attempt = make.recorded(people.key)
        given, _ = at_once(
            leave(people, attempt, "w"),
            lambda attempt=attempt: lifecycle.cancel_operation(  # type: ignore[misc]
                key=people.key, operation_id=attempt.operation_id, reason="no need"
            ),
        )
        expected = State.DISPATCHED if isinstance(given, LeaveGiven) else State.CANCELLED
        assert make.fresh(attempt).state == expected


def test_a_policy_that_forbids_against_leave(people: Cast) -> None:
    for _ in range(ROUNDS):
        make.policy(people.tenant, tools=make.TOOLS)
        attempt = make.recorded(people.key)
        document = {"default": "refuse", "tools": TICKETS}
        given, _ = at_once(
            leave(people, attempt, "w"),
            lambda document=document: publish_policy(  # type: ignore[misc]
                tenant=people.tenant, document=document, by=None
            ),
        )
        if isinstance(given, LeaveGiven):
            assert make.fresh(attempt).state == State.DISPATCHED
        else:
            assert given.reasons == ("policy-refused",)
            assert make.fresh(attempt).state == State.INTENT_RECORDED
        assert not isinstance(durable(leave(people, make.fresh(attempt), "later")), LeaveGiven)


@pytest.mark.parametrize(
    "taken_back",
    [
        "UPDATE ledger_apikey SET revoked_at = now()",
        "UPDATE ledger_tenant SET suspended_at = now() WHERE slug = 'acme'",
        "UPDATE ledger_agent SET is_active = FALSE",
        "UPDATE ledger_user SET is_active = FALSE WHERE username = 'owner'",
        "SELECT 1 FROM ledger_tenant WHERE slug = 'acme' FOR NO KEY UPDATE",  # a policy is published
    ],
    ids=["key", "tenant", "agent", "owner", "policy"],
)
def test_who_takes_authority_back_waits_for_the_leave_that_rests_on_it(people: Cast, taken_back: str) -> None:
    attempt = make.recorded(people.key)

    def take_back() -> None:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '50ms'")
                cursor.execute(taken_back)
        finally:
            connection.close()

    def give_and_see() -> None:
        leave(people, attempt, "worker-1")()
        with ThreadPoolExecutor(1) as other, pytest.raises(OperationalError, match="lock timeout"):
            other.submit(take_back).result()

    durable(give_and_see)
    take_back()


def test_usage_counts_once_and_never_passes_the_limit_by_leave(people: Cast) -> None:
    limits = {"tool_calls": 3, "tokens": 100}
    durable(lambda: lifecycle.open_run(key=people.key, name="tight", limits=limits))
    usage = lambda: lifecycle.record_usage(  # noqa: E731
        key=people.key, name="tight", usage_id="u-1", amounts={"tokens": 40}
    )
    attempts = [make.recorded(people.key, run="tight") for _ in range(8)]
    asked = [leave(people, attempt, f"worker-{n}") for n, attempt in enumerate(attempts)]
    answers = at_once(*asked, usage, usage, usage)
    given, refused = only(LeaveGiven, answers), only(LeaveRefused, answers)
    assert len(given) == 3
    assert {answer.reasons for answer in refused} == {("budget-exhausted",)}
    accounts = {account.unit: account for account in BudgetAccount.objects.all()}
    assert (accounts["tool_calls"].reserved, accounts["tokens"].spent) == (3, 40)


def test_everything_about_one_operation_at_once_deadlocks_nobody(people: Cast) -> None:
    """Verbs of every kind queue behind the operation's row, whatever they lock after it."""
    for number in range(ROUNDS):
        attempt = make.dispatched(people.key, make.TICKET, run=f"run-{number}")
        item = make.item_of(make.reported(people.key, attempt, "unknown"))
        at_once(
            leave(people, attempt, "w"),
            report(people, attempt, "succeeded", result_ref="t_1"),
            report(people, attempt, "failed", no_effect=True, error_class="declined"),
            approve(attempt, people.approver),
            lambda item=item: lifecycle.recheck(  # type: ignore[misc]
                item_id=item.pk, by=people.operator, why="?"
            ),
            lambda item=item: lifecycle.confirm_happened(  # type: ignore[misc]
                item_id=item.pk, by=people.second_operator, why="seen", reference="t_1"
            ),
            lambda attempt=attempt: lifecycle.cancel_operation(  # type: ignore[misc]
                key=people.key, operation_id=attempt.operation_id, reason="no"
            ),
            lambda number=number: lifecycle.record_usage(  # type: ignore[misc]
                key=people.key, name=f"run-{number}", usage_id="u", amounts={"tokens": 1}
            ),
            post(
                people,
                make.intent_of(
                    make.TICKET, args={"title": "x"}, operation_key=attempt.operation.operation_key
                ),
            ),
        )
        assert attempt.operation.attempts.filter(state=State.OUTCOME_CONFIRMED).count() <= 1
