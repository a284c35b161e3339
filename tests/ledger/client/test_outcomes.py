"""What a block says of its outcome, whichever way it is left."""

import uuid

import pytest

from ledger.client import DefiniteFailure, Ledger, LedgerUnavailable, Refused
from tests.ledger.client.fake import DROP, Canned, FakeLedger, after, problem
from tests.ledger.client.test_operation import SIGNED, block

LEFT_BY: list[tuple[BaseException, str]] = [
    (ValueError("secret"), "unknown"),
    (TimeoutError(), "timeout"),
    (ConnectionResetError(), "reset"),
    (KeyboardInterrupt(), "unknown"),
    (SystemExit(1), "unknown"),
]


@pytest.mark.parametrize(("error", "error_class"), LEFT_BY, ids=[repr(e) for e, _ in LEFT_BY])
def test_leaving_by_an_error_means_unknown(
    ledger: Ledger, fake: FakeLedger, error: BaseException, error_class: str
) -> None:
    with pytest.raises(type(error)) as raised, block(ledger):
        raise error
    assert raised.value is error
    said = {"class": error_class, "message": type(error).__name__}
    assert fake.bodies("outcome") == [{**SIGNED, "outcome": "unknown", "error": said}]


def test_leaving_without_a_word_means_unknown(ledger: Ledger, fake: FakeLedger) -> None:
    fake.on("outcome", after("UNKNOWN"))
    with block(ledger) as op:
        assert op.args
    assert fake.bodies("outcome")[0]["outcome"] == "unknown"
    assert op.state == "UNKNOWN"


def test_a_definite_failure_is_one(ledger: Ledger, fake: FakeLedger) -> None:
    with pytest.raises(DefiniteFailure), block(ledger):
        raise DefiniteFailure("declined", "card expired", retryable=True)
    assert fake.bodies("outcome") == [
        {
            **SIGNED,
            "outcome": "failed",
            "no_effect": True,
            "retryable": True,
            "error": {"class": "declined", "message": "card expired"},
        }
    ]


@pytest.mark.parametrize("error_class", ["timeout", "reset", "unknown", "", "DECLINED"])
def test_what_proves_nothing_is_no_definite_failure(error_class: str) -> None:
    with pytest.raises(ValueError, match="proves nothing"):
        DefiniteFailure(error_class)


def test_fail_is_reported_once_and_the_block_ends_well(ledger: Ledger, fake: FakeLedger) -> None:
    with block(ledger) as op:
        op.fail("refused", "closed account")
    assert [body["outcome"] for body in fake.bodies("outcome")] == ["failed"]


def test_an_outcome_that_cannot_be_stored_is_not_denied(ledger: Ledger, fake: FakeLedger) -> None:
    fake.on("outcome", *[DROP] * 9)
    with pytest.raises(LedgerUnavailable) as raised, block(ledger) as op:
        op.confirm(result_ref="re_1")
    assert raised.value.executed
    assert "may have been executed" in str(raised.value)
    assert "not executed" not in str(raised.value)
    assert {body["outcome"] for body in fake.bodies("outcome")} == {"succeeded"}


@pytest.mark.parametrize(("status", "slug"), [(422, "invalid-request"), (413, "body-too-large")])
def test_a_success_whose_details_are_refused_is_one_all_the_same(
    ledger: Ledger, fake: FakeLedger, status: int, slug: str
) -> None:
    fake.on("outcome", problem(status, slug), after("OUTCOME_CONFIRMED"))
    with block(ledger) as op:
        op.confirm(result_ref="Sent.\nOK", usage={"EUR": "0.123456789"})
    assert fake.bodies("outcome")[1:] == [{**SIGNED, "outcome": "succeeded"}]
    assert (op.state, op.result_ref) == ("OUTCOME_CONFIRMED", "Sent.\nOK")


def test_a_reference_need_not_be_text(ledger: Ledger, fake: FakeLedger) -> None:
    reference = uuid.UUID(int=7)
    with block(ledger) as op:
        op.confirm(result_ref=reference)  # type: ignore[arg-type]
    assert fake.bodies("outcome")[0]["result_ref"] == str(reference)


def test_a_refused_outcome_still_leaves_the_attempt_unknown(ledger: Ledger, fake: FakeLedger) -> None:
    fake.on("outcome", *[problem(422, "invalid-request")] * 2)
    with pytest.raises(Refused, match="may have been executed"), block(ledger) as op:
        op.confirm(result_ref="x" * 9999)
    assert [body["outcome"] for body in fake.bodies("outcome")] == ["succeeded", "succeeded", "unknown"]


def test_what_cannot_be_said_leaves_the_outcome_unknown(ledger: Ledger, fake: FakeLedger) -> None:
    with pytest.raises(TypeError), block(ledger) as op:
        op.confirm(result_ref="re_1", usage={"EUR": object()})  # type: ignore[dict-item]
    assert [body["outcome"] for body in fake.bodies("outcome")] == ["unknown"]


def test_an_error_is_not_replaced_by_ours(ledger: Ledger, fake: FakeLedger) -> None:
    fake.on("outcome", *[DROP] * 9)
    with pytest.raises(ZeroDivisionError) as raised, block(ledger):
        raise ZeroDivisionError
    assert "It finds out by itself" in raised.value.__notes__[0]


def test_a_parked_fact_keeps_what_is_known(ledger: Ledger, fake: FakeLedger) -> None:
    fake.on("outcome", Canned(202, {"parked": True}))
    with block(ledger) as op:
        op.confirm(result_ref="re_1")
    assert (op.operation_id, op.result_ref) == ("op_1", "re_1")
