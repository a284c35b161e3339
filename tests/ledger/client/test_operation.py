"""The block: leave first, send only what leave returned, and always an outcome at its end."""

import threading
from dataclasses import replace
from typing import Any

import pytest

from ledger.client import (
    AlreadyDone,
    DuplicateOperation,
    Ledger,
    LedgerError,
    LedgerUnavailable,
    Operation,
    PendingReview,
    Refused,
    SentAgain,
    current_operation,
)
from tests.ledger.client.fake import (
    ABOUT,
    ARGS,
    DROP,
    HASH,
    OTHER_ARGS,
    OTHER_HASH,
    Canned,
    FakeLedger,
    directive,
    leave,
    problem,
)

KEY = "invoice:7:send"
SIGNED = {"worker_id": "worker-1", "operation_key": KEY}


def block(ledger: Ledger) -> Operation:
    return ledger.operation(KEY, tool="email.send", args=ARGS, run="r", step="s")


def enter(ledger: Ledger) -> None:
    """Enter the block and say loudly when its body ran."""
    with block(ledger) as op:
        pytest.fail(f"the body ran with {op.args}")


def test_leave_comes_before_the_body_and_the_outcome_after_it(ledger: Ledger, fake: FakeLedger) -> None:
    with block(ledger) as op:
        assert fake.paths() == ["/intents", "/attempts/att_1/dispatch"]
        assert (op.args, op.idempotency_key, op.correlation_id) == (ARGS, "il-key", "ilc-1")
        assert (op.operation_id, op.attempt_id, op.done) == ("op_1", "att_2", False)
        op.provider_request("pr_9")
        op.confirm(result_ref="re_1")
    assert fake.paths()[2:] == ["/attempts/att_2/provider-request", "/attempts/att_2/outcome"]
    assert fake.bodies("outcome") == [{**SIGNED, "outcome": "succeeded", "result_ref": "re_1"}]
    assert op.result_ref == "re_1"
    assert op.state == "OUTCOME_CONFIRMED"
    assert fake.authorizations == {"Bearer ilk_id_secret_check"}


def test_the_intent_says_what_the_caller_said(ledger: Ledger, fake: FakeLedger) -> None:
    with block(ledger) as op:
        op.confirm(result_ref="re_1")
    intent, dispatch = fake.bodies("intents")[0], fake.bodies("dispatch")[0]
    assert intent == {
        **SIGNED,
        "tool": "email.send",
        "args": ARGS,
        "run": "r",
        "step": "s",
    }
    assert dispatch == {"worker_id": "worker-1", "args_hash": HASH, "leave_id": dispatch["leave_id"]}


def test_each_send_asks_with_a_leave_id_of_its_own(ledger: Ledger, fake: FakeLedger) -> None:
    for _ in range(2):
        with block(ledger) as op:
            op.confirm(result_ref="re_1")
    ids = [body["leave_id"] for body in fake.bodies("dispatch")]
    assert len(set(ids)) == 2


def test_a_lost_answer_to_leave_is_asked_for_again_with_the_same_leave_id(
    ledger: Ledger, fake: FakeLedger
) -> None:
    fake.on("dispatch", DROP, leave())
    with block(ledger) as op:
        op.confirm(result_ref="re_1")
    first, second = fake.bodies("dispatch")
    assert first == second


HELD: dict[str, Any] = {"review_url": "http://ledger/review/1", "reason": "approval_required"}
NOT_ENTERED: list[tuple[str, list[Canned], list[Canned], type[LedgerError], str]] = [
    ("hold", [directive("hold", 202, **HELD)], [], PendingReview, "review op_1 at http://ledger/review/1"),
    ("reconcile", [directive("reconcile")], [], DuplicateOperation, "finding out"),
    ("in flight", [directive("in_flight", headers={"Retry-After": "7"})], [], DuplicateOperation, "in 7 s"),
    ("failed", [directive("failed", state="FAILED")], [], Refused, "closed as FAILED"),
    ("policy", [problem(403, "policy-refused")], [], Refused, "policy-refused"),
    ("wrong key", [problem(401, "unauthorized")], [], Refused, "unauthorized"),
    (
        "reused",
        [problem(422, "idempotency-key-reused", **ABOUT)],
        [],
        PendingReview,
        "person must review op_1",
    ),
    ("bad args", [problem(422, "args-required")], [], Refused, "args-required"),
    ("proxy", [Canned(404, raw=b"<html>")] * 5, [], LedgerUnavailable, "404, not in its words"),
    ("wrong name", [problem(400, "bad-request")], [], LedgerUnavailable, "answered 400"),
    ("redirect", [Canned(302, headers={"Location": "/elsewhere"})], [], LedgerUnavailable, "answered 302"),
    ("html", [Canned(200, raw=b"<html>")], [], LedgerUnavailable, "cannot be read"),
    ("list", [Canned(200, raw=b"[]")], [], LedgerUnavailable, "cannot be read"),
    ("empty", [Canned(200)], [], LedgerUnavailable, "no directive"),
    ("new word", [directive("go_ahead")], [], LedgerUnavailable, "no directive"),
    ("nobody", [directive("dispatch", attempt_id="")], [], LedgerUnavailable, "no directive"),
    ("taken", [], [problem(409, "in-flight", **ABOUT)], DuplicateOperation, "operation op_1"),
    ("conflict", [], [problem(409, "on-hold", **ABOUT)], PendingReview, "on-hold"),
    ("its own", [], [problem(409, "ledger-executes", **ABOUT)], DuplicateOperation, "ledger-executes"),
    (
        "authority",
        [],
        [problem(403, "key-revoked", reasons=["key-revoked", "expired"])],
        Refused,
        "key-revoked, expired",
    ),
    ("fenced", [], [problem(503, "fenced", retryable=False)], LedgerUnavailable, "answered 503"),
    ("asleep", [problem(503, "busy", headers={"Retry-After": "900"})], [], LedgerUnavailable, "answered 503"),
    ("201", [], [Canned(201, leave().body)], LedgerUnavailable, "not leave"),
    ("202", [], [Canned(202, leave().body)], LedgerUnavailable, "not leave"),
    ("no key", [], [leave(idempotency_key="left out")], LedgerUnavailable, "lacks idempotency_key"),
    ("null key", [], [leave(idempotency_key=None)], LedgerUnavailable, "lacks idempotency_key"),
    ("no correlation", [], [leave(correlation_id="")], LedgerUnavailable, "lacks correlation_id"),
    ("no attempt", [], [leave(attempt_id=7)], LedgerUnavailable, "lacks attempt_id"),
    ("no lease", [], [leave(lease_until="left out")], LedgerUnavailable, "lacks lease_until"),
    ("no epoch", [], [leave(lease_epoch=True)], LedgerUnavailable, "no lease"),
    ("no args", [], [leave(args="left out")], LedgerUnavailable, "no arguments"),
    ("other args", [], [leave(args=OTHER_ARGS)], LedgerUnavailable, "other arguments"),
    ("other hash", [], [leave(args_hash=OTHER_HASH)], LedgerUnavailable, "other arguments"),
    ("other state", [], [leave(state="UNKNOWN")], LedgerUnavailable, "not leave"),
    ("other operation", [], [leave(operation_id="op_2")], LedgerUnavailable, "another operation"),
    ("doubled", [], [Canned(200, raw=b'{"args": {}, "args": {}}')], LedgerUnavailable, "cannot be read"),
    ("cut", [], [Canned(200, raw=b'{"args": ')], LedgerUnavailable, "cannot be read"),
]


@pytest.mark.parametrize(
    ("intents", "dispatches", "error", "words"),
    [row[1:] for row in NOT_ENTERED],
    ids=[r[0] for r in NOT_ENTERED],
)
def test_without_good_leave_the_body_never_runs(
    ledger: Ledger,
    fake: FakeLedger,
    intents: list[Canned],
    dispatches: list[Canned],
    error: type[LedgerError],
    words: str,
) -> None:
    fake.on("intents", *intents)
    fake.on("dispatch", *dispatches)
    with pytest.raises(error) as raised:
        enter(ledger)
    assert str(raised.value).startswith("This call was not executed")
    assert words in str(raised.value)
    assert not raised.value.executed
    assert not fake.bodies("outcome")


def test_nobody_listens(fake: FakeLedger) -> None:
    ledger = Ledger("http://127.0.0.1:1", "ilk_x", tries=1)
    with pytest.raises(LedgerUnavailable, match="not executed"):
        enter(ledger)


def test_arguments_a_person_corrected_are_the_ones_to_send(ledger: Ledger, fake: FakeLedger) -> None:
    fake.on("dispatch", problem(409, "args-changed", args=OTHER_ARGS))
    fake.on("dispatch", leave(args=OTHER_ARGS, args_hash=OTHER_HASH))
    with block(ledger) as op:
        assert op.args == OTHER_ARGS
        op.confirm(result_ref="re_1")
    assert [body["args_hash"] for body in fake.bodies("dispatch")] == [HASH, OTHER_HASH]


def test_corrected_arguments_without_arguments_are_a_refusal(ledger: Ledger, fake: FakeLedger) -> None:
    fake.on("dispatch", problem(409, "args-changed"))
    with pytest.raises(Refused, match="args-changed"):
        enter(ledger)


def test_what_the_caller_changes_in_a_copy_is_not_sent(ledger: Ledger) -> None:
    with block(ledger) as op:
        op.args["amount"] = 999
        assert op.args == ARGS
        op.confirm(result_ref="re_1")


@pytest.mark.parametrize("needed", ["args", "idempotency_key", "correlation_id", "lease_until"])
def test_done_leaves_the_block_before_anything_can_be_sent(
    ledger: Ledger, fake: FakeLedger, needed: str
) -> None:
    fake.on("intents", directive("done", result_ref="re_0"))
    sent = []
    with block(ledger) as op:
        try:
            sent.append(getattr(op, needed))
        except Exception as error:  # noqa: BLE001  (what a careless agent writes)
            sent.append(error)
        sent.append("after")
    assert sent == []
    assert (op.done, op.result_ref, fake.paths()) == (True, "re_0", ["/intents"])


@pytest.mark.parametrize(
    "report",
    [lambda op: op.confirm(result_ref="re_0"), lambda op: op.fail("declined"), lambda op: op.unknown()],
)
def test_nothing_is_reported_about_what_is_done(ledger: Ledger, fake: FakeLedger, report: Any) -> None:
    fake.on("intents", directive("done", result_ref="re_0"))
    with block(ledger) as op:
        report(op)
    assert fake.paths() == ["/intents"]


def test_another_result_of_what_is_done_is_reported_and_never_silent(
    ledger: Ledger, fake: FakeLedger
) -> None:
    fake.on("intents", directive("done", result_ref="re_0"))
    with pytest.raises(SentAgain, match="with result re_9") as told, block(ledger) as op:
        op.confirm(result_ref="re_9")
    assert told.value.executed
    assert fake.paths() == ["/intents", f"/attempts/{told.value.about.attempt_id}/outcome"]


def test_done_lets_the_caller_branch(ledger: Ledger, fake: FakeLedger) -> None:
    fake.on("intents", directive("done", result_ref="re_0"))
    with block(ledger) as op:
        result = op.result_ref if op.done else "sent again"
    assert result == "re_0"


def test_another_operations_done_is_not_swallowed(ledger: Ledger, fake: FakeLedger) -> None:
    fake.on("intents", directive("done", result_ref="re_0"))
    with pytest.raises(AlreadyDone), block(ledger):
        raise AlreadyDone("op_other", None)


@pytest.mark.parametrize("slug", ["already-done", "illegal-transition"])
def test_what_happened_meanwhile_is_asked_again(ledger: Ledger, fake: FakeLedger, slug: str) -> None:
    fake.on("intents", directive("dispatch"), directive("done", result_ref="re_0"))
    fake.on("dispatch", problem(409, slug, **ABOUT))
    with block(ledger) as op:
        assert op.done
    assert op.result_ref == "re_0"


def test_asking_again_ends(ledger: Ledger, fake: FakeLedger) -> None:
    fake.on("dispatch", *[problem(409, "already-done", **ABOUT)] * 2)
    with pytest.raises(DuplicateOperation, match="already-done"):
        enter(ledger)
    assert len(fake.bodies("dispatch")) == 2


def test_the_lease_can_be_lengthened_until_it_is_lost(ledger: Ledger, fake: FakeLedger) -> None:
    fake.on("heartbeat", Canned(200, {"lease_until": "2026-08-11T10:01:00Z"}), problem(409, "stale-lease"))
    with block(ledger) as op:
        assert op.heartbeat() == "2026-08-11T10:01:00Z"
        with pytest.raises(DuplicateOperation):
            op.heartbeat()
    assert fake.bodies("heartbeat")[0] == {"worker_id": "worker-1", "lease_epoch": 3}


def test_an_operation_is_entered_once(ledger: Ledger) -> None:
    op = block(ledger)
    with op:
        op.confirm(result_ref="re_1")
    with pytest.raises(RuntimeError, match="entered once"), op:
        pytest.fail("entered twice")


def test_of_two_threads_with_one_operation_one_sends(blocking: Ledger, fake: FakeLedger) -> None:
    """The second comes while the first waits for the intent's answer."""
    op, told = block(blocking), list[str]()

    def enter_too() -> None:
        with pytest.raises(RuntimeError, match="entered once") as raised:
            op.__enter__()
        told.append(str(raised.value))

    def let_it_come() -> None:
        second = threading.Thread(target=enter_too)
        second.start()
        second.join(10)

    fake.on("intents", replace(directive("dispatch"), first=let_it_come))
    with op:
        op.confirm(result_ref="re_1")
    assert len(told) == 1
    assert [path.rpartition("/")[2] for path in fake.paths()] == ["intents", "dispatch", "outcome"]


def test_nothing_is_known_outside_the_block(ledger: Ledger) -> None:
    op = block(ledger)
    with pytest.raises(RuntimeError, match="inside the with block"):
        _ = op.args
    with pytest.raises(RuntimeError, match="enter the with block"):
        _ = op.operation_id


@pytest.mark.parametrize("bad", [float("nan"), 2**53, "\ud800", "a\x00b", object(), {1, 2}])
def test_arguments_that_are_no_strict_json_never_reach_the_ledger(
    ledger: Ledger, fake: FakeLedger, bad: object
) -> None:
    with pytest.raises((TypeError, ValueError)):
        ledger.operation("k", tool="t", args={"bad": bad})
    assert fake.asked == []


def test_the_running_operation_is_at_hand_and_then_no_more(blocking: Ledger) -> None:
    with block(blocking) as op:
        assert current_operation() is op
        op.confirm(result_ref="re_1")
    with pytest.raises(RuntimeError, match="no operation is running"):
        current_operation()
