"""Several senders, and people, at the same moment or while one sender stands still: one send, or none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from ledger import lifecycle
from ledger.models import ApiKey, Attempt
from ledger.queries.invariants import findings
from ledger.reconciliation import reconcile_once, sweep_once
from ledger.rules.canonical import canonical_bytes
from ledger.transactions import Busy, database_clock, durable
from tests.ledger.reconciliation.desk import Desk, between
from tests.support import make, races
from tests.support.cast import cast
from tests.support.provider import ProviderProcess

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 5
at_once = partial(races.at_once, may_raise=(Busy,))


@pytest.fixture
def desk(transactional_db: None, provider: ProviderProcess) -> Iterator[Desk]:
    yield Desk(cast(), provider).prepare()
    assert list(findings()) == []


def posts(desk: Desk) -> int:
    return len(desk.provider.requests("POST"))


def test_two_senders_send_once(desk: Desk) -> None:
    for _ in range(ROUNDS):
        attempt, before = desk.posted(), posts(desk)
        at_once(*[desk.sends] * 3)
        desk.sends_what_waits()
        assert (make.fresh(attempt).state, posts(desk) - before) == ("OUTCOME_CONFIRMED", 1)
        assert desk.effects(attempt) == 1


def test_a_resend_is_made_once(desk: Desk) -> None:
    for _ in range(ROUNDS):
        attempt = desk.posted()
        desk.configure(send={**desk.send_part, "url": "http://127.0.0.1:9/refunds"})
        desk.sends()
        desk.configure()
        Attempt.objects.update(send_again_at=None)
        at_once(*[desk.sends] * 3)
        desk.sends_what_waits()
        assert (attempt.operation.attempts.count(), desk.effects(attempt)) == (2, 1)


def revoke(key: ApiKey) -> None:
    ApiKey.objects.filter(pk=key.pk).update(revoked_at=database_clock())


def cancel(key: ApiKey, attempt: Attempt) -> None:
    durable(lambda: lifecycle.cancel_operation(key=key, operation_id=attempt.operation_id, reason="stop"))


def test_sending_against_taking_back(desk: Desk) -> None:
    """Whatever comes first: what was refused or cancelled has no effect, what was sent has one."""
    for _ in range(ROUNDS):
        attempt = desk.posted()
        key = desk.people.key
        revoked = partial(revoke, key)
        cancelled = partial(cancel, key, attempt)
        at_once(desk.sends, revoked, cancelled)
        state = make.fresh(attempt).state
        assert desk.effects(attempt) == (1 if state == "OUTCOME_CONFIRMED" else 0)
        desk = replace(desk, people=replace(desk.people, key=make.key(desk.people.agent)))


def lease_runs_out(attempt: Attempt) -> None:
    Attempt.objects.filter(pk=attempt.pk).update(lease_until=database_clock())
    sweep_once()
    reconcile_once()


def test_stopped_until_it_was_found_absent_it_opens_no_other_attempt(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it then would have leave for is another send, which it has not read."""
    attempt = desk.posted()

    def time_passes() -> None:
        lease_runs_out(attempt)
        desk.settle_window_over(attempt)
        reconcile_once()
        Attempt.objects.update(send_again_at=None)
        assert make.fresh(attempt).state == "FAILED_RETRYABLE"

    with monkeypatch.context() as stopped:
        between(stopped, "sender.leave_committed", time_passes)
        desk.sends()
    assert (attempt.operation.attempts.count(), desk.effects(attempt)) == (1, 0)
    assert make.fresh(attempt).state == "FAILED_RETRYABLE"
    desk.sends_what_waits()
    assert (attempt.operation.attempts.count(), desk.effects(attempt)) == (2, 1)


def test_stopped_until_a_person_corrected_it_it_spends_no_approval_on_what_was_wrong(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.rule(idempotent=False, key_ttl_s=0)
    attempt, people, before = desk.posted(), desk.people, posts(desk)
    args = {"amount": 999, "currency": "EUR", "customer": "cus_7"}

    def a_person_corrects() -> None:
        lease_runs_out(attempt)
        desk.settle_window_over(attempt)
        reconcile_once()
        item, raw = make.item_of(attempt).pk, canonical_bytes(args)
        durable(
            lambda: lifecycle.relink_arguments(
                item_id=item, by=people.operator, why="a slip", args_bytes=raw, args=args
            )
        )
        for person in (people.operator, people.second_operator):
            durable(partial(lifecycle.confirm_did_not_happen, item_id=item, by=person, why="seen"))
        corrected = make.item_of(attempt.operation.attempts.get(number=2))
        durable(lambda: lifecycle.approve(item_id=corrected.pk, by=people.approver, why="checked"))

    with monkeypatch.context() as stopped:
        between(stopped, "sender.leave_committed", a_person_corrects)
        desk.sends()
    corrected = attempt.operation.attempts.get(number=2)
    assert (corrected.state, corrected.approvals.get().used_at) == ("INTENT_RECORDED", None)
    assert posts(desk) == before
    desk.sends_what_waits()
    assert (make.fresh(corrected).state, make.fresh(attempt).state) == ("OUTCOME_CONFIRMED", "FAILED")
    assert posts(desk) == before + 1
