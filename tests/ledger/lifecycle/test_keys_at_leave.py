"""The key that asks is judged as it is when leave is given, not as it was when it signed in."""

from __future__ import annotations

import pytest

from ledger import lifecycle
from ledger.lifecycle import LeaveGiven, LeaveProblem, LeaveRefused
from ledger.models import ApiKey
from ledger.transactions import database_clock, durable
from tests.support import make
from tests.support.cast import cast

pytestmark = pytest.mark.django_db


def test_a_key_revoked_after_it_signed_in_gets_no_leave() -> None:
    key = cast().key
    attempt = make.recorded(key)
    ApiKey.objects.filter(pk=key.pk).update(revoked_at=database_clock())
    answer = make.ask_leave(key, attempt)
    assert isinstance(answer, LeaveRefused)
    assert (answer.problem, answer.reasons) == (LeaveProblem.NOT_AUTHORISED, ("key-revoked",))


def test_nobody_approves_what_their_own_agent_is_to_send() -> None:
    people = cast()
    own = make.key(make.agent(people.tenant, people.approver, "approvers-bot"))
    attempt = make.held(people.key)
    item = make.item_of(attempt)
    durable(lambda: lifecycle.approve(item_id=item.pk, by=people.approver, why="checked"))
    answer = make.ask_leave(own, make.fresh(attempt))
    assert isinstance(answer, LeaveRefused)
    assert answer.reasons == ("approver-refused",)
    assert isinstance(make.ask_leave(people.key, attempt), LeaveGiven)


def test_leave_given_is_not_given_again_for_other_arguments() -> None:
    key = cast().key
    attempt = make.dispatched(key)

    def again(args_hash: str) -> LeaveGiven | LeaveRefused:
        return durable(
            lambda: lifecycle.give_leave(
                key=key,
                attempt_id=attempt.pk,
                worker_id=attempt.worker_id,
                leave_id=attempt.leave_id,
                args_hash=args_hash,
            )
        )

    refused = again(f"v1:sha256:{'0' * 64}")
    assert isinstance(refused, LeaveRefused)
    assert refused.problem == LeaveProblem.ARGS_CHANGED
    assert isinstance(again(attempt.args_hash), LeaveGiven)
