"""The agent's client and the real API, over HTTP: each directive as an agent meets it."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from ledger.client import (
    DefiniteFailure,
    DuplicateOperation,
    Ledger,
    Operation,
    PendingReview,
    Refused,
)
from ledger.client.amounts import Limits
from ledger.client.block import CURRENT
from ledger.models import Attempt
from tests.ledger.ingest.cast import Cast
from tests.ledger.ingest.steps import ARGS
from tests.support.api import WebServer


@pytest.fixture(autouse=True)
def killed_agents_leave_no_operation_running() -> Iterator[None]:
    """An agent that dies never leaves its block; this process goes on to other tests."""
    token = CURRENT.set(None)
    yield
    CURRENT.reset(token)


@pytest.fixture
def ledger(server: WebServer, cast: Cast) -> Iterator[Ledger]:
    ledger = Ledger(server.address, cast.key()[0], "worker-1")
    yield ledger
    ledger.close()


def mail(ledger: Ledger, **changed: Any) -> Operation:
    return ledger.operation("mail:1", tool="email.send", args={**ARGS, **changed})


def attempt_of(cast: Cast) -> Attempt:
    return Attempt.objects.get(tenant=cast.tenant)


def test_sent_once_and_done_for_ever(ledger: Ledger, cast: Cast) -> None:
    sent = []
    for _ in range(3):
        with mail(ledger) as op:
            sent.append((op.args, op.idempotency_key, op.correlation_id))
            op.provider_request("req_1")
            op.confirm(result_ref="msg_1", provider_request_id="req_1")
        assert op.result_ref == "msg_1"
    assert [args for args, _, _ in sent] == [ARGS]
    assert attempt_of(cast).state == "OUTCOME_CONFIRMED"


def lost(op: Operation) -> None:
    raise ConnectionResetError(op.args)


def declined(op: Operation) -> None:
    raise DefiniteFailure("declined", op.args["to"])


def fell_silent(op: Operation) -> None:
    assert op.args


@pytest.mark.parametrize(
    ("how", "state", "next_time"),
    [
        (lost, "UNKNOWN", DuplicateOperation),
        (fell_silent, "UNKNOWN", DuplicateOperation),
        (declined, "FAILED", Refused),
    ],
)
def test_how_the_block_is_left_is_what_is_stored(
    ledger: Ledger, cast: Cast, how: Callable[[Operation], None], state: str, next_time: type[Exception]
) -> None:
    try:
        with mail(ledger) as op:
            how(op)
    except (ConnectionResetError, DefiniteFailure):
        pass
    assert attempt_of(cast).state == state
    with pytest.raises(next_time, match="not executed"), mail(ledger) as op:
        pytest.fail(f"sent {op.args} again")


def test_a_worker_that_died_is_reported_by_the_next_one(ledger: Ledger) -> None:
    mail(ledger).__enter__()
    with pytest.raises(DuplicateOperation, match="already on its way"), mail(ledger):
        pytest.fail("sent twice")
    assert [found["state"] for found in ledger.recover("worker-1")["attempts"]] == ["UNKNOWN"]


def test_other_arguments_wait_for_a_person(ledger: Ledger) -> None:
    mail(ledger).__enter__()
    with pytest.raises(PendingReview, match="person must review") as raised:
        mail(ledger, amount=2).__enter__()
    assert "/review/" in raised.value.review_url


@pytest.mark.parametrize(
    ("tool", "error", "words"),
    [("no.such", Refused, "policy-refused"), ("pay.held", PendingReview, "approval_required")],
)
def test_a_tool_that_may_not_be_called_now(
    ledger: Ledger, tool: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        ledger.operation("k", tool=tool, args={}).__enter__()


def test_a_wrong_key_is_refused(server: WebServer) -> None:
    ledger = Ledger(server.address, "ilk_wrong")
    with pytest.raises(Refused, match="unauthorized"):
        mail(ledger).__enter__()
    ledger.close()


def test_the_largest_arguments_fit_and_larger_ones_are_refused(ledger: Ledger) -> None:
    with mail(ledger, text="x" * 261_000) as op:
        op.confirm(result_ref="msg_1")
    with pytest.raises(Refused, match="body-too-large"):
        mail(ledger, text="x" * 262_040).__enter__()


def test_a_success_is_known_though_its_reference_is_none(ledger: Ledger, cast: Cast) -> None:
    with mail(ledger) as op:
        op.confirm(result_ref="Sent.\nOK", usage={"EUR": "0.123456789"})
    assert attempt_of(cast).success_reported


def test_a_lease_can_be_lengthened(ledger: Ledger) -> None:
    with mail(ledger) as op:
        assert op.heartbeat() >= op.lease_until
        op.check_lease()
        op.confirm(result_ref="msg_1")


def test_a_run_with_its_budget_and_checkpoint(ledger: Ledger) -> None:
    assert ledger.put_run("nightly", limits={"tokens": 100})["budget"]["tokens"]["left"] == 100
    for _ in range(2):
        ledger.post_usage("nightly", usage_id="u1", usage={"tokens": 30})
    ledger.put_checkpoint("nightly", sequence=1, reference="s3://x", content_hash="v1:sha256:" + "0" * 64)
    run = ledger.get_run("nightly")
    assert run["budget"]["tokens"]["left"] == 70
    assert run["checkpoint"]["sequence"] == 1


def test_money_goes_as_exact_as_it_is_kept(ledger: Ledger) -> None:
    limits: Limits = {"EUR": Decimal("500.00"), "USD": "0.30"}
    assert ledger.put_run("paying", limits=limits)["budget"]["EUR"]["left"] == "500.00"
    ledger.post_usage("paying", usage_id="u1", usage={"usd": Decimal("0.1")})
    run = ledger.post_usage("paying", usage_id="u2", usage={"usd": "0.2"})
    assert run["budget"]["USD"] == {"limit": "0.30", "reserved": "0", "spent": "0.3", "left": "0"}


def test_what_is_known_can_be_read(ledger: Ledger) -> None:
    with mail(ledger) as op:
        op.confirm(result_ref="msg_1")
    assert ledger.get_operation(op.operation_id)["outcome"] == "confirmed"
    found = ledger.find_operations(operation_key="mail:1")["operations"]
    assert [operation["operation_id"] for operation in found] == [op.operation_id]


def test_a_report_on_an_attempt_the_ledger_forgot_finds_its_operation(ledger: Ledger, cast: Cast) -> None:
    forgotten = "att_" + "7" * 26
    told = ledger.report_outcome(forgotten, "succeeded", result_ref="msg_1", operation_key="mail:1")
    assert told.parked
    with pytest.raises(PendingReview), mail(ledger):
        pass
    assert attempt_of(cast).reason == "sent_without_leave"
    assert not ledger.report_early_outcome("mail:1", "succeeded", result_ref="msg_1").parked
