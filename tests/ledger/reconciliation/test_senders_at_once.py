"""Several senders, and people, at the same moment on connections of their own: one send, or none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from ledger import lifecycle
from ledger.models import ApiKey, Attempt
from ledger.queries.invariants import findings
from ledger.transactions import Busy, database_clock, durable
from tests.ledger.reconciliation.desk import Desk
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
