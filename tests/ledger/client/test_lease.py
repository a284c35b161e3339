"""A long block: its lease is lengthened until it is left, and a lost one is told before anything is sent."""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.client import DuplicateOperation, LeaseLost, Ledger, LedgerUnavailable, Operation, block
from ledger.client.answers import Leave, Reply, leave_of, span_s
from ledger.client.calls import Calls
from ledger.client.lease import MOST_BETWEEN_S, PARTS, Lease, pace_s
from tests.ledger.client.fake import ARGS, DROP, HASH, Canned, FakeLedger, lease_of, leave, problem
from tests.ledger.client.passing import Clock, clock_of

EXTENDED = Canned(200, {"lease_until": "2026-08-11T10:01:00Z"})


class QuickLease(Lease):
    """It beats all the time, and waits for an answer as long as a busy machine may need."""

    def __init__(self, leave: Leave, clock: Callable[[], float]) -> None:
        super().__init__(leave, clock)
        self.every_s, self.patience_s = 0.02, 10.0


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block, "Lease", QuickLease)
    monkeypatch.setattr(logging.getLogger("ledger.client"), "disabled", False)  # import-linter disables all


def kept(ledger: Ledger) -> Operation:
    """A block with a keeper."""
    return ledger.operation("k", tool="t", args=ARGS).keeping_lease()


def lost(op: Operation) -> None:
    """Wait until the keeper has said so."""
    assert op._keeper is not None
    op._keeper.join(10)
    assert op.lease_lost


def test_a_kept_lease_is_lengthened_while_the_block_runs(blocking: Ledger, fake: FakeLedger) -> None:
    with kept(blocking) as op:
        fake.wait_for("heartbeat", 3)
        assert (op.args, op.lease_lost) == (ARGS, False)
        op.confirm(result_ref="re_1")
    assert fake.bodies("heartbeat")[0] == {"worker_id": "worker-1", "lease_epoch": 3}
    assert "ledger-lease" not in [thread.name for thread in threading.enumerate()]


LOSSES = [
    ("refused", [problem(409, "stale-lease")], "stale-lease"),
    ("key revoked", [problem(403, "key-revoked")], "key-revoked"),
    ("unanswered", [DROP, DROP], "could not be lengthened in time"),
    ("overloaded", [EXTENDED, Canned(500), DROP], "could not be lengthened in time"),
]
NEEDED = ["args", "idempotency_key", "correlation_id", "lease_until"]


@pytest.mark.parametrize(("answers", "words"), [row[1:] for row in LOSSES], ids=[row[0] for row in LOSSES])
def test_with_a_lost_lease_nothing_more_is_handed_out(
    blocking: Ledger, fake: FakeLedger, answers: list[Canned], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    fake.on("heartbeat", *answers)
    with caplog.at_level(logging.WARNING, "ledger.client"), kept(blocking) as op:
        lost(op)
        for needed in NEEDED:
            with pytest.raises(LeaseLost, match=words) as raised:
                getattr(op, needed)
            assert raised.value.executed
        with pytest.raises(LeaseLost, match=words):
            op.check_lease()
        op.provider_request("pr_1")
        op.confirm(result_ref="re_1")
    assert "send nothing more" in caplog.text
    assert [body["outcome"] for body in fake.bodies("outcome")] == ["succeeded"]
    assert len(fake.bodies("heartbeat")) == len(answers)


def test_one_missed_beat_is_no_loss(blocking: Ledger, fake: FakeLedger) -> None:
    fake.on("heartbeat", DROP, EXTENDED, Canned(503), EXTENDED)
    with kept(blocking) as op:
        fake.wait_for("heartbeat", 5)
        assert op.args == ARGS
        op.confirm(result_ref="re_1")


def test_leaving_by_a_lost_lease_leaves_the_outcome_unknown(blocking: Ledger, fake: FakeLedger) -> None:
    fake.on("heartbeat", problem(409, "stale-lease"))

    def go_on() -> None:
        with kept(blocking) as op:
            lost(op)
            pytest.fail(f"sent {op.args}")

    with pytest.raises(DuplicateOperation, match="Send nothing more"):
        go_on()
    assert [body["outcome"] for body in fake.bodies("outcome")] == ["unknown"]


def test_after_the_report_a_refused_beat_is_no_loss(
    blocking: Ledger, fake: FakeLedger, caplog: pytest.LogCaptureFixture
) -> None:
    with kept(blocking) as op:
        op.confirm(result_ref="re_1")
        fake.on("heartbeat", *[problem(409, "stale-lease")] * 3)
        assert op._keeper is not None
        op._keeper.join(10)
        assert not op.lease_lost
    assert caplog.text == ""


REFUSALS = [(409, "stale-lease"), (403, "key-revoked"), (404, "not-found")]


@pytest.mark.parametrize("needed", NEEDED)
@pytest.mark.parametrize(("status", "slug"), REFUSALS)
def test_a_loss_met_by_the_callers_own_heartbeat_counts_too(
    ledger: Ledger, fake: FakeLedger, status: int, slug: str, needed: str
) -> None:
    fake.on("heartbeat", problem(status, slug))
    with ledger.operation("k", tool="t", args=ARGS) as op:
        with pytest.raises(LeaseLost, match=slug) as raised:
            op.heartbeat()
        assert raised.value.executed
        with pytest.raises(LeaseLost):
            getattr(op, needed)
        op.unknown()


def test_an_unanswered_heartbeat_of_the_callers_is_told_as_such(ledger: Ledger, fake: FakeLedger) -> None:
    fake.on("heartbeat", *[DROP] * 5)
    with ledger.operation("k", tool="t", args=ARGS) as op:
        with pytest.raises(LedgerUnavailable, match="may have been executed") as raised:
            op.heartbeat()
        assert raised.value.executed
        assert op.args == ARGS
        op.unknown()


def test_the_other_twin_learns_it_too(ledger: Any, fake: FakeLedger) -> None:
    fake.on("heartbeat", problem(409, "stale-lease"))
    with ledger.operation("k", tool="t", args=ARGS).keeping_lease() as op:
        while not op.lease_lost:
            ledger.get_run("r")  # lets the event loop of the asynchronous one run
        op.unknown()
    assert len(fake.bodies("heartbeat")) == 1


@pytest.fixture
def clock(ledger: Any) -> Clock:
    return clock_of(ledger)


def over(op: Operation) -> bool:
    """Is it told that nothing more may be sent?"""
    try:
        op.check_lease()
    except LeaseLost:
        return op.lease_lost
    return False


def block_with_leave(ledger: Ledger, fake: FakeLedger, *, lease_s: float, first: Any = None) -> Operation:
    fake.on("dispatch", replace(leave(lease_until=lease_of(lease_s)), first=first))
    return ledger.operation("k", tool="t", args=ARGS)


def test_once_its_time_is_over_a_block_may_send_nothing_more(
    ledger: Ledger, fake: FakeLedger, clock: Clock
) -> None:
    with block_with_leave(ledger, fake, lease_s=60) as op:
        assert op.args == ARGS
        clock.now = 50.0
        assert not over(op)
        clock.now = 61.0
        assert op.lease_lost
        assert (op.idempotency_key, op.correlation_id) == ("il-key", "ilc-1"), "a report may name them"
        with pytest.raises(LeaseLost, match="its time is over") as raised:
            op.check_lease()
        assert raised.value.executed
        op.confirm(result_ref="re_1")
    assert [body["outcome"] for body in fake.bodies("outcome")] == ["succeeded"]


@pytest.mark.parametrize("needed", NEEDED)
def test_what_was_not_handed_out_in_time_is_not_handed_out(
    ledger: Ledger, fake: FakeLedger, clock: Clock, needed: str
) -> None:
    """As in a process that was stopped, or a machine that slept, with leave in hand."""
    with block_with_leave(ledger, fake, lease_s=60) as op:
        clock.now = 61.0
        with pytest.raises(LeaseLost, match="its time is over"):
            getattr(op, needed)
        op.unknown()


def test_a_heartbeat_gives_as_much_time_as_the_ledger_says(
    ledger: Ledger, fake: FakeLedger, clock: Clock
) -> None:
    with block_with_leave(ledger, fake, lease_s=60) as op:
        clock.now = 50.0
        fake.on("heartbeat", Canned(200, {"lease_until": lease_of(60)}))
        op.heartbeat()
        clock.now = 100.0
        assert not over(op)
        fake.on("heartbeat", Canned(200, {"lease_until": lease_of(1)}))  # the longest extent is near
        op.heartbeat()
        clock.now = 102.0
        assert over(op)
        op.unknown()


def test_leave_that_comes_when_its_time_is_over_is_none(
    ledger: Ledger, fake: FakeLedger, clock: Clock
) -> None:
    op = block_with_leave(ledger, fake, lease_s=60, first=lambda: clock.pause(61))
    with pytest.raises(LeaseLost, match="This call was not executed") as raised, op:
        pytest.fail("the body ran")
    assert not raised.value.executed
    said = fake.bodies("outcome")[0]
    assert (said["outcome"], said["no_effect"], said["retryable"]) == ("failed", True, True)
    with op:
        op.confirm(result_ref="re_1")
    assert len({body["leave_id"] for body in fake.bodies("dispatch")}) == 2


def test_leave_that_comes_late_is_counted_from_the_try_that_was_answered(
    ledger: Ledger, fake: FakeLedger, clock: Clock
) -> None:
    fake.on("dispatch", replace(DROP, first=lambda: clock.pause(100)))
    with block_with_leave(ledger, fake, lease_s=60) as op:
        clock.now += 50
        assert not over(op)
        clock.now += 10
        assert over(op)
        op.unknown()


def test_a_keeper_that_dies_loses_the_lease(
    blocking: Ledger, fake: FakeLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError

    with kept(blocking) as op:
        monkeypatch.setattr(Calls, "lengthen", broken)
        lost(op)
        with pytest.raises(LeaseLost, match="RuntimeError"):
            _ = op.args
        op.unknown()


SPANS: list[tuple[str, str, float | None]] = [
    ("Sun, 29 Nov 2026 18:00:00 GMT", "2026-11-29T18:01:00Z", 60.0),
    ("Sun, 29 Nov 2026 18:00:00 GMT", "2026-11-29T19:00:30.5+01:00", 30.5),
    ("Sun, 29 Nov 2026 18:00:00 GMT", "2026-11-29T17:00:00Z", None),
    ("Sun, 29 Nov 2026 18:00:00 GMT", "2026-11-29T18:01:00", None),
    ("", "2026-11-29T18:01:00Z", None),
    ("yesterday", "2026-11-29T18:01:00Z", None),
    ("Sun, 29 Nov 2026 18:00:00 GMT", "soon", None),
]


@pytest.mark.parametrize(("date", "until", "seconds"), SPANS)
def test_how_long_a_lease_is_by_the_ledgers_own_clock(date: str, until: str, seconds: float | None) -> None:
    assert span_s(date, until) == seconds


def test_a_leave_is_paced_by_its_own_length() -> None:
    said = leave(lease_until=lease_of(41))
    reply = Reply(200, said.body, date=format_datetime(datetime.now(UTC), usegmt=True))
    given = Lease(leave_of(reply, asked_hash=HASH), lambda: 0.0)
    assert 7.5 < given.every_s == given.patience_s <= 8.2


@given(lease_s=st.floats(min_value=1, max_value=1e5), cut=st.floats(min_value=0, max_value=1))
def test_two_missed_beats_fit_into_any_lease(lease_s: float, cut: float) -> None:
    """Each beat comes after `every_s` and takes at most as long; the Date that was read is `cut` s early."""
    every_s = pace_s(lease_s + cut)
    assert 0 < every_s <= MOST_BETWEEN_S
    assert 4 * every_s <= lease_s
    assert pace_s(None) == MOST_BETWEEN_S
    assert PARTS > 4
