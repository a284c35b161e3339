"""Waiting for a decision: the ledger is asked to answer late, and ever more rarely where it does not."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.client import Ledger, LedgerUnavailable, PendingReview, Refused
from tests.ledger.client.fake import ABOUT, DROP, FakeLedger, directive, problem
from tests.ledger.client.passing import Clock, clock_of
from tests.ledger.client.test_operation import block, enter

OPERATION = "op_1"


@pytest.fixture
def clock(ledger: Any) -> Clock:
    return clock_of(ledger)


def test_what_can_be_done_at_once_is_not_waited_for(ledger: Ledger, fake: FakeLedger, clock: Clock) -> None:
    op = block(ledger)
    assert op.wait(600) == "dispatch"
    assert fake.paths() == ["/intents"]
    with op:
        op.confirm(result_ref="re_1")
    assert fake.paths()[1:] == ["/intents", "/attempts/att_1/dispatch", "/attempts/att_2/outcome"]


def test_the_ledger_answers_when_a_person_has_decided(ledger: Ledger, fake: FakeLedger, clock: Clock) -> None:
    fake.on("intents", directive("hold", 202), directive("hold", 202), directive("dispatch"))
    fake.on(OPERATION, clock.late("hold", after_s=30), clock.late("dispatch", after_s=12))
    assert block(ledger).wait(600) == "dispatch"
    assert fake.preferences == ["wait=30", "wait=30"]
    assert clock.pauses == []


def test_no_longer_than_asked_for(ledger: Ledger, fake: FakeLedger, clock: Clock) -> None:
    fake.on("intents", *[directive("reconcile")] * 4)
    fake.on(OPERATION, clock.late("reconcile", after_s=30), clock.late("reconcile", after_s=15))
    assert block(ledger).wait(45) == "reconcile"
    assert (clock.now, fake.preferences) == (45, ["wait=30", "wait=15"])


def test_a_ledger_that_does_not_wait_is_asked_ever_more_rarely(
    ledger: Ledger, fake: FakeLedger, clock: Clock
) -> None:
    fake.on("intents", *[directive("in_flight")] * 200)
    fake.on(OPERATION, *[directive("in_flight", headers={"Retry-After": "2"})] * 200)
    assert block(ledger).wait(300) == "in_flight"
    assert clock.now == pytest.approx(300)
    assert 15 <= len(clock.pauses) <= 35
    assert min(clock.pauses[:-1]) >= 1
    assert max(clock.pauses) <= 20
    assert all(pause >= 10 for pause in clock.pauses[4:-1])


def test_a_ledger_that_goes_away_meanwhile_is_waited_for_too(
    ledger: Ledger, fake: FakeLedger, clock: Clock
) -> None:
    fake.on("intents", directive("hold", 202), *[DROP] * 5, directive("done", result_ref="re_1"))
    fake.on(OPERATION, DROP)
    op = block(ledger)
    assert op.wait(600) == "done"
    fake.on("intents", directive("done", result_ref="re_1"))
    with op:
        assert op.done
    assert op.result_ref == "re_1"


def test_a_ledger_that_stays_away_is_an_error(ledger: Ledger, fake: FakeLedger, clock: Clock) -> None:
    fake.on("intents", *[DROP] * 500)
    with pytest.raises(LedgerUnavailable, match="not executed"):
        block(ledger).wait(60)
    assert clock.now >= 60


def test_other_arguments_under_a_known_key_are_waited_for_without_a_rush(
    ledger: Ledger, fake: FakeLedger, clock: Clock
) -> None:
    """The operation may say `dispatch` about its other arguments: what is ours to do only our intent says."""
    reused = problem(422, "idempotency-key-reused", **ABOUT)
    fake.on("intents", reused, reused, reused, directive("dispatch"))
    fake.on(OPERATION, *[clock.late("dispatch", after_s=0)] * 3)
    assert block(ledger).wait(600) == "dispatch"
    assert len(clock.pauses) == 3


def test_what_is_refused_is_not_waited_for(ledger: Ledger, fake: FakeLedger, clock: Clock) -> None:
    fake.on("intents", problem(403, "policy-refused"))
    with pytest.raises(Refused, match="policy-refused"):
        block(ledger).wait(600)
    assert clock.pauses == []


def test_a_block_that_could_not_be_entered_is_waited_for_and_entered(
    ledger: Ledger, fake: FakeLedger, clock: Clock
) -> None:
    fake.on("intents", directive("hold", 202), directive("hold", 202), directive("dispatch"))
    fake.on(OPERATION, clock.late("dispatch", after_s=5))
    op = block(ledger)
    with pytest.raises(PendingReview), op:
        pytest.fail("entered")
    assert op.wait(600) == "dispatch"
    with op:
        op.confirm(result_ref="re_1")
    assert op.state == "OUTCOME_CONFIRMED"


def test_permission_is_asked_for_all_the_same(ledger: Ledger, fake: FakeLedger, clock: Clock) -> None:
    """What waiting was told may be over by the time the block is entered."""
    assert block(ledger).wait(1) == "dispatch"
    fake.on("intents", directive("hold", 202))
    with pytest.raises(PendingReview):
        enter(ledger)
