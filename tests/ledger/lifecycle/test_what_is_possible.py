"""What a page offers is what the verb allows, and for the same reason."""

from __future__ import annotations

import pytest

from ledger import lifecycle
from ledger.lifecycle import DecisionRefused
from ledger.models import Attempt
from ledger.rules.reconcile import LookedUpKind, Record
from ledger.rules.states import State
from ledger.rules.vocabulary import DecisionKind
from ledger.transactions import durable
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db

IN_PROGRESS = Record(reference="re_1", content="same", state="in_progress")
OTHER = Record(reference="re_2", content="other", state="done")


@pytest.fixture
def people() -> Cast:
    return cast()


def why_refused(attempt: Attempt, kind: DecisionKind) -> tuple[str, ...]:
    offers = {offer.kind: offer for offer in lifecycle.offers_for(make.item_of(attempt))}
    return offers[kind].refused


def test_nobody_says_it_did_not_happen_while_the_provider_has_it(people: Cast) -> None:
    attempt = make.looked_up(make.unknown(people.key), LookedUpKind.FOUND, IN_PROGRESS)
    item = make.item_of(attempt)
    assert why_refused(attempt, DecisionKind.CONFIRM_DID_NOT)[0].startswith(
        "The provider has re_1 (in progress)"
    )
    with pytest.raises(DecisionRefused) as refused:
        durable(lambda: lifecycle.confirm_did_not_happen(item_id=item.pk, by=people.operator, why="sure"))
    assert refused.value.code == "found-there"
    with pytest.raises(DecisionRefused) as refused:
        durable(lambda: lifecycle.reject(item_id=item.pk, by=people.operator, why="sure", what="did_not"))
    assert refused.value.code == "found-there"
    assert make.fresh(attempt).state == State.UNKNOWN


def test_a_record_with_other_content_leaves_it_to_the_person(people: Cast) -> None:
    attempt = make.looked_up(make.unknown(people.key), LookedUpKind.FOUND, OTHER)
    item = make.item_of(attempt)
    durable(lambda: lifecycle.confirm_did_not_happen(item_id=item.pk, by=people.operator, why="not ours"))
    assert make.fresh(attempt).state == State.FAILED


def test_an_approval_that_waits_can_be_taken_back(people: Cast) -> None:
    attempt = make.held(people.key)
    item = make.item_of(attempt)
    durable(lambda: lifecycle.approve(item_id=item.pk, by=people.approver, why="fine"))
    assert why_refused(attempt, DecisionKind.REJECT) == ()
    durable(lambda: lifecycle.reject(item_id=item.pk, by=people.operator, why="not fine"))
    attempt = make.fresh(attempt)
    assert (attempt.state, attempt.failure) == (State.FAILED, "rejected")
    assert attempt.approvals.get().void_cause == "rejected"
    answer = make.ask_leave(people.key, attempt)
    assert isinstance(answer, lifecycle.LeaveRefused)


def test_a_tool_without_look_up_is_not_looked_up_again(people: Cast) -> None:
    attempt = make.for_a_person(people.key)
    item = make.item_of(attempt)
    for kind, verb in (
        (DecisionKind.RECHECK, lambda: lifecycle.recheck(item_id=item.pk, by=people.operator, why="x")),
        (
            DecisionKind.RELINK_RECORD,
            lambda: lifecycle.relink_record(item_id=item.pk, by=people.operator, why="x", reference="t_1"),
        ),
    ):
        assert why_refused(attempt, kind) == ("The tool has no look-up.",)
        with pytest.raises(DecisionRefused) as refused:
            durable(verb)
        assert refused.value.code == "no-lookup"
