"""Authority: each reason alone, all of them in order, and the best of several keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.rules.authority import (
    NO_APPROVAL,
    Allowed,
    ApprovalFacts,
    KeyFacts,
    Now,
    Reason,
    Refused,
    Then,
    check_authority,
    covers_target,
    covers_tool,
)
from ledger.rules.vocabulary import Effect

NOW = datetime(2026, 8, 11, 10, tzinfo=UTC)
SECOND = timedelta(seconds=1)

GOOD_KEY = KeyFacts(revoked=False, expires_at=NOW + SECOND, covers_tool=True, covers_target=True)
GOOD_APPROVAL = ApprovalFacts(
    used=False, expires_at=NOW + SECOND, digest_equal=True, approvers_permitted=True
)

WITHOUT = Then(
    tool="pay",
    target="acc-1",
    effect=Effect.PAYMENT,
    rule_hash="v1:sha256:aa",
    idempotent=True,
    expires_at=NOW + SECOND,
    with_approval=False,
    resend=True,
    absent_by_lookup=True,
    key_window_ends_at=NOW + SECOND,
)
WITH = replace(WITHOUT, with_approval=True)
FINE = Now(
    at=NOW,
    tenant_active=True,
    agent_active=True,
    owner_active=True,
    keys=(GOOD_KEY,),
    cancelled=False,
    rule_hash="v1:sha256:aa",
    max_attempts=5,
    attempts_used=4,
    budget_short=(),
    approval=GOOD_APPROVAL,
)

Facts = tuple[Then, Now]


def on_key(**changes: object) -> Callable[[Facts], Facts]:
    def flip(facts: Facts) -> Facts:
        then, now = facts
        return then, replace(now, keys=tuple(replace(key, **changes) for key in now.keys))  # type: ignore[arg-type]

    return flip


def on_approval(**changes: object) -> Callable[[Facts], Facts]:
    def flip(facts: Facts) -> Facts:
        then, now = facts
        assert now.approval is not None
        return then, replace(now, approval=replace(now.approval, **changes))  # type: ignore[arg-type]

    return flip


def on_now(**changes: object) -> Callable[[Facts], Facts]:
    return lambda facts: (facts[0], replace(facts[1], **changes))  # type: ignore[arg-type]


def on_then(**changes: object) -> Callable[[Facts], Facts]:
    return lambda facts: (replace(facts[0], **changes), facts[1])  # type: ignore[arg-type]


# One fact each, in the order of the interface page; the moment of expiry itself counts as expired.
FLIPS: dict[str, Callable[[Facts], Facts]] = {
    "tenant-suspended": on_now(tenant_active=False),
    "agent-inactive": on_now(agent_active=False),
    "owner-inactive": on_now(owner_active=False),
    "key-revoked": on_key(revoked=True),
    "key-expired": on_key(expires_at=NOW),
    "scope-refused": on_key(covers_tool=False),
    "target-refused": on_key(covers_target=False),
    "operation-cancelled": on_now(cancelled=True),
    "expired": on_then(expires_at=NOW),
    "policy-refused": on_now(rule_hash=None),
    "policy-changed": on_now(rule_hash="v1:sha256:bb"),
    "key-window-over": on_then(key_window_ends_at=NOW),
    "attempts-used-up": on_now(attempts_used=5),
    "budget-exhausted": on_now(budget_short=("EUR: limit 5",)),
    "approval-used": on_approval(used=True),
    "approval-expired": on_approval(expires_at=NOW),
    "approval-stale": on_approval(digest_equal=False),
    "approver-refused": on_approval(approvers_permitted=False),
}
ONLY_WITHOUT = {"policy-changed", "key-window-over", "attempts-used-up"}
ONLY_WITH = {"approval-used", "approval-expired", "approval-stale", "approver-refused"}


def reasons(then: Then, now: Now) -> list[str]:
    answer = check_authority(then, now)
    return [str(reason) for reason in answer.reasons] if isinstance(answer, Refused) else []


def test_the_words_and_their_order_are_those_of_the_interface() -> None:
    assert [str(reason) for reason in Reason] == list(FLIPS)


def test_with_every_fact_in_order_both_kinds_of_send_are_allowed() -> None:
    assert check_authority(WITHOUT, FINE) == Allowed()
    assert check_authority(WITH, FINE) == Allowed()


@given(st.booleans(), st.sets(st.sampled_from(list(FLIPS))))
def test_each_flipped_fact_adds_exactly_its_reason(with_approval: bool, flipped: set[str]) -> None:
    """Of any set of wrong facts the answer is that set, in order, less what this send is not asked."""
    if "policy-refused" in flipped:
        flipped.discard("policy-changed")  # where nothing permits the tool, nothing has changed
    facts: Facts = (WITH if with_approval else WITHOUT, FINE)
    for reason in flipped:
        facts = FLIPS[reason](facts)
    not_asked = ONLY_WITHOUT if with_approval else ONLY_WITH
    assert reasons(*facts) == [reason for reason in FLIPS if reason in flipped - not_asked]


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ({}, True),
        ({"effect": Effect.READ}, False),
        ({"absent_by_lookup": False}, False),
        ({"resend": False}, False),
        ({"with_approval": True}, False),
        ({"key_window_ends_at": None}, True),
        ({"key_window_ends_at": NOW + SECOND}, False),
        ({"key_window_ends_at": NOW + SECOND, "idempotent": False}, True),
    ],
)
def test_the_key_window_matters_only_where_an_absent_is_believed(
    change: dict[str, object], refused: bool
) -> None:
    then = replace(WITHOUT, **{"key_window_ends_at": NOW, **change})  # type: ignore[arg-type]
    assert ("key-window-over" in reasons(then, FINE)) == refused


def test_no_end_is_never_over() -> None:
    then = replace(WITHOUT, expires_at=None)
    assert reasons(then, replace(FINE, keys=(replace(GOOD_KEY, expires_at=None),))) == []


def test_a_page_may_ask_without_an_approval() -> None:
    assert reasons(WITH, replace(FINE, approval=None)) == []


def test_leave_without_the_approval_it_needs_is_refused() -> None:
    assert reasons(WITH, replace(FINE, approval=NO_APPROVAL)) == ["approval-stale"]
    assert reasons(WITHOUT, replace(FINE, approval=NO_APPROVAL)) == []


def test_no_key_at_all_is_no_authority() -> None:
    assert reasons(WITHOUT, replace(FINE, keys=())) == ["key-revoked"]


KEYS = [
    KeyFacts(revoked=revoked, expires_at=ends_at, covers_tool=tool, covers_target=target)
    for revoked, ends_at, tool, target in product(
        (False, True), (NOW, NOW + SECOND), (False, True), (False, True)
    )
]


@given(st.lists(st.sampled_from(KEYS), min_size=1, max_size=4))
def test_of_several_keys_the_one_that_gets_furthest_speaks(keys: list[KeyFacts]) -> None:
    alone = [reasons(WITHOUT, replace(FINE, keys=(key,))) for key in keys]
    together = reasons(WITHOUT, replace(FINE, keys=tuple(keys)))
    order = list(FLIPS)
    furthest = max(order.index(answer[0]) if answer else len(order) for answer in alone)
    assert together in alone
    assert (order.index(together[0]) if together else len(order)) == furthest


@given(st.lists(st.sampled_from(KEYS), max_size=4), st.sampled_from(KEYS))
def test_a_key_that_would_be_allowed_alone_is_never_spoilt_by_others(
    keys: list[KeyFacts], other: KeyFacts
) -> None:
    assert reasons(WITHOUT, replace(FINE, keys=(*keys, other, GOOD_KEY))) == []


def test_scopes_cover_what_their_globs_say() -> None:
    scopes = ["tool:mail.*", "target:acc-?", "ack"]
    assert covers_tool(scopes, "mail.send")
    assert not covers_tool(scopes, "pay")
    assert not covers_tool(["mail.*", "target:mail.*"], "mail.send")
    assert covers_target(scopes, "acc-1")
    assert not covers_target(scopes, "acc-10")
    assert not covers_target(["tool:*"], "acc-1")


def test_a_target_the_arguments_do_not_have_is_covered_by_nothing() -> None:
    assert covers_target([], None)
    assert not covers_target(["target:*"], "")
