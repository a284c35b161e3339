"""Each decision that two may take at one moment, again and again on connections of their own: one of both is
first, what the other then finds is right for that order, and never do both hold, or neither.

Fifty meetings of each pair; `LEDGER_RACES=500` makes it as many, and prints the table.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pytest

from ledger import lifecycle
from ledger.lifecycle import Decided, DecisionRefused, LeaveGiven, LeaveRefused, OutcomeReport
from ledger.models import Approval, ApprovalUse, Attempt, User
from ledger.policies import current_snapshot
from ledger.queries.invariants import findings
from ledger.reconciliation import sweep_once
from ledger.rules.canonical import canonical_bytes
from ledger.transactions import durable
from review import access, decisions, ownership, policies
from review.door import NotPermitted, NotVisible
from review.queries import item_page
from review.roles import Role, grant_role
from tests.support import make
from tests.support.cast import Cast, cast, person
from tests.support.races import Duel

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

TOLD = "LEDGER_RACES"
RUNS = int(os.environ.get(TOLD, "50"))
REFUSALS = (DecisionRefused, NotPermitted, NotVisible)
SHORT_S = 0.3


class First(StrEnum):
    """Who was first; `both` and `neither` never are."""

    LEFT = "left"
    RIGHT = "right"
    BOTH = "both"
    NEITHER = "neither"


@dataclass(frozen=True)
class Meeting:
    """One attempt that two are about to decide. `number`: the how manieth of its pair."""

    people: Cast
    attempt: Attempt
    number: int
    voter: User

    @property
    def item_id(self) -> str:
        return make.item_of(self.attempt).pk

    @property
    def standing(self) -> bool:
        """Is there an approval, or a vote towards one, that may still lead to a send?"""
        waiting = Approval.objects.filter(attempt=self.attempt, used_at=None, voided_at=None)
        votes = self.attempt.votes.filter(approval=None, voided_at=None)
        return waiting.exists() or votes.exists()

    def leave(self) -> LeaveGiven | LeaveRefused:
        return make.ask_leave(self.people.key, make.fresh(self.attempt))


Answers = tuple[Any, Any]


@dataclass(frozen=True)
class Pair:
    """Two sides, what they are about, and who was first, told from their answers and from what is stored."""

    left: Callable[[Meeting], Any]
    right: Callable[[Meeting], Any]
    first: Callable[[Meeting, Answers], First]
    attempt: Callable[[Cast], Attempt]
    deploy: Mapping[str, Any] = field(default_factory=dict)  # in the rule of a deployment
    before: Callable[[Meeting], Any] = lambda _: None


def held(people: Cast) -> Attempt:
    return make.held(people.key)


def sent(people: Cast) -> Attempt:
    return make.for_a_person(people.key)


def yes(meeting: Meeting) -> Decided:
    return decisions.approve(meeting.voter, meeting.item_id, why="go")


def yes_as_shown(meeting: Meeting) -> Callable[[], Decided]:
    """The page was opened before either of them."""
    ballot = item_page(meeting.voter, meeting.item_id).ballot
    assert ballot is not None
    return lambda: decisions.approve(meeting.voter, meeting.item_id, why="go", shown_digest=ballot.digest)


def ended_by_the_other(meeting: Meeting, answers: Answers) -> First:
    """The yes came first and was taken back by what came after it, or it came too late. Nothing is sent."""
    if isinstance(meeting.leave(), LeaveGiven):
        return First.BOTH
    if meeting.standing:
        sweep_once()  # a published policy voids nothing by itself
    if meeting.standing:
        return First.BOTH
    return First.LEFT if isinstance(answers[0], Decided) else First.RIGHT


def one_of_both(_: Meeting, answers: Answers) -> First:
    """Whoever was second is refused."""
    decided = [isinstance(answer, Decided) for answer in answers]
    if all(decided) or not any(decided):
        return First.BOTH if all(decided) else First.NEITHER
    return First.LEFT if decided[0] else First.RIGHT


def yes_or_other_arguments(meeting: Meeting, answers: Answers) -> First:
    first = one_of_both(meeting, answers)
    given = isinstance(meeting.leave(), LeaveGiven)
    return first if given is (first is First.LEFT) else First.BOTH


def standing_vote_of(meeting: Meeting, answers: Answers) -> First:
    """One person's yes, however often it is pressed: the later press replaces the earlier one."""
    votes = meeting.attempt.votes.filter(voided_at=None)
    if votes.count() != 1 or Approval.objects.filter(attempt=meeting.attempt).exists():
        return First.BOTH if votes.exists() else First.NEITHER
    last = isinstance(answers[1], Decided) and votes.get().decision_id == answers[1].decision.pk
    return First.LEFT if last else First.RIGHT


def used_or_ended(meeting: Meeting, answers: Answers) -> First:
    approval = Approval.objects.get(attempt=meeting.attempt)
    given, used = isinstance(answers[0], LeaveGiven), ApprovalUse.objects.filter(approval=approval)
    if given is not used.exists() or (given and used.get().at >= approval.expires_at):
        return First.BOTH
    sweep_once()
    approval.refresh_from_db()
    ended = approval.voided_at is not None and make.item_of(meeting.attempt).reason == "approval_expired"
    if given is ended:
        return First.BOTH if given else First.NEITHER
    return First.LEFT if given else First.RIGHT


def made_in_time(meeting: Meeting, _: Answers) -> First:
    """An approval exists only where its first vote still held when the second was given."""
    made = Approval.objects.filter(attempt=meeting.attempt).first()
    if made is None:
        return First.RIGHT
    return First.LEFT if made.approved_at < made.expires_at and made.votes.count() == 2 else First.BOTH


def reject(meeting: Meeting) -> Decided:
    return decisions.reject(meeting.people.operator, meeting.item_id, why="stop")


def cancel(meeting: Meeting) -> Any:
    cancelled = meeting.attempt.operation_id
    return durable(
        lambda: lifecycle.cancel_operation(key=meeting.people.key, operation_id=cancelled, reason="no need")
    )


def publish(meeting: Meeting) -> int:
    """The next version, in which this tool's rule is another one."""
    tools = rules(approval_ttl_s=600 + meeting.number)
    typed = canonical_bytes({"default": "refuse", "tools": tools}).decode()
    snapshot = current_snapshot(meeting.people.tenant.pk)
    assert snapshot is not None
    return policies.publish(meeting.people.admin, "acme", typed=typed, base=snapshot.version, why="as agreed")


def take_right(meeting: Meeting) -> None:
    admin, voter = meeting.people.admin, meeting.voter
    access.take_role_away(admin, "acme", voter.pk, role=Role.OPERATOR, why="left")


def give_right_back(meeting: Meeting) -> None:
    grant_role(meeting.voter, meeting.people.tenant, Role.APPROVER)


def late_success(meeting: Meeting) -> Any:
    said = OutcomeReport(worker_id="worker-1", outcome="succeeded", result_ref=f"t_{meeting.number}")
    return durable(
        lambda: lifecycle.record_outcome(key=meeting.people.key, attempt_id=meeting.attempt.pk, report=said)
    )


def relink(meeting: Meeting) -> Decided:
    typed = '{"version": "2026.12"}'
    return decisions.relink_arguments(meeting.people.operator, meeting.item_id, why="typo", typed=typed)


def claim(meeting: Meeting) -> Decided:
    return ownership.claim(meeting.voter, meeting.item_id)


def take_over(meeting: Meeting) -> Decided:
    return ownership.take_over(meeting.people.second_operator, meeting.item_id, why="they are away")


def first_yes(meeting: Meeting) -> Decided:
    return decisions.approve(meeting.people.second_approver, meeting.item_id, why="go")


def rules(**of_deployments: Any) -> dict[str, Mapping[str, Any]]:
    return {**make.TOOLS, make.DEPLOY: {**make.TOOLS[make.DEPLOY], **of_deployments}}


BY_TWO = {"approvals": 2}
SHORT = {"approval_ttl_s": SHORT_S}

PAIRS: Mapping[str, Pair] = {
    "approve × approve, one person": Pair(yes, yes, standing_vote_of, held, BY_TWO),
    "approve × reject": Pair(yes, reject, ended_by_the_other, held),
    "approve × cancel": Pair(yes, cancel, ended_by_the_other, held),
    "approve × end of the first yes": Pair(
        yes, lambda _: sweep_once(), made_in_time, held, {**BY_TWO, **SHORT}, before=first_yes
    ),
    "leave × end of the approval": Pair(
        Meeting.leave, lambda _: sweep_once(), used_or_ended, held, SHORT, before=yes
    ),
    "approve × policy published": Pair(yes, publish, ended_by_the_other, held),
    "approve × right taken": Pair(yes, take_right, ended_by_the_other, held, before=give_right_back),
    "approve × late success": Pair(yes, late_success, ended_by_the_other, sent),
    "approve × relink": Pair(yes, relink, yes_or_other_arguments, held),
    "approve × take over": Pair(yes, take_over, one_of_both, held, before=claim),
}


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest) -> Iterator[dict[str, Counter[First]]]:
    """What was counted, printed at the end where a number of runs was asked for."""
    counted: dict[str, Counter[First]] = {}
    yield counted
    capture = request.config.pluginmanager.getplugin("capturemanager")
    if TOLD in os.environ:
        with capture.global_and_fixture_disabled():
            print("\n" + "\n".join(lines_of(counted)))


def lines_of(counted: Mapping[str, Counter[First]]) -> Iterator[str]:
    yield f"| {'pair':<31} | runs | first: left | right | both | neither |"
    yield f"|{'-' * 33}|-----:|------------:|------:|-----:|--------:|"
    for name in (name for name in PAIRS if name in counted):
        ends = counted[name]
        yield (
            f"| {name:<31} | {ends.total():>4} | {ends[First.LEFT]:>11} | {ends[First.RIGHT]:>5} "
            f"| {ends[First.BOTH]:>4} | {ends[First.NEITHER]:>7} |"
        )


@pytest.mark.parametrize("name", PAIRS)
def test_one_of_two_is_first(transactional_db: None, table: dict[str, Counter[First]], name: str) -> None:
    pair, people, ends = PAIRS[name], cast(), table.setdefault(name, Counter())
    voter = person("voter", people.tenant, Role.APPROVER)
    if pair.deploy:
        make.policy(people.tenant, by=people.admin, tools=rules(**pair.deploy))
    with Duel() as duel:
        for number in range(1, RUNS + 1):
            meeting = Meeting(people, pair.attempt(people), number, voter)
            pair.before(meeting)
            left = yes_as_shown(meeting) if pair.right is publish else lambda: pair.left(meeting)  # noqa: B023
            answers = duel.meet(left, lambda: pair.right(meeting), may_raise=REFUSALS)  # noqa: B023
            first = pair.first(meeting, answers)
            ends[first] += 1
            duel.handicap(left_was_first=first is First.LEFT)
    assert ends[First.LEFT] + ends[First.RIGHT] == RUNS, ends
    assert list(findings()) == []
