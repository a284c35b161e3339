"""The ledger as executor: what it sends, what it must not send, and what it says became of it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from ledger import lifecycle
from ledger.lifecycle import IntentKind, LeaveProblem
from ledger.models import ApiKey, Attempt, BudgetAccount, Event, Provider, Pulse, Tenant
from ledger.queries.invariants import findings
from ledger.reconciliation import reconcile_once, resend, sweep_once
from ledger.rules.directive import Directive
from ledger.transactions import database_clock, durable, monotonic_s
from tests.ledger.reconciliation.desk import REFUND, SECOND, Desk, between, events, history
from tests.support import make
from tests.support.processes import wait_until


def newest(attempt: Attempt) -> Attempt:
    return make.fresh(attempt.operation.attempts.latest("number"))


def revoke(desk: Desk) -> None:
    desk.people.agent.keys.update(revoked_at=database_clock())


def test_an_intent_is_sent_once_and_confirmed_by_its_receipt(desk: Desk) -> None:
    attempt = desk.posted()
    report = desk.sends()
    attempt = make.fresh(attempt)
    assert (report.sent, dict(report.outcomes)) == (1, {"OUTCOME_CONFIRMED": 1})
    assert (attempt.state, attempt.confirmed_by, attempt.lease_until) == ("OUTCOME_CONFIRMED", "agent", None)
    assert attempt.result_ref.startswith("re_")
    assert desk.effects(attempt) == 1
    assert history(attempt) == [
        ("attempt.intent", "agent"),
        ("attempt.dispatched", "sender"),
        ("attempt.outcome_reported", "sender"),
        ("attempt.confirmed", "sender"),
        ("operation.settled", "sender"),
    ]
    assert Pulse.objects.filter(name="send").exists()
    assert desk.sends().sent == 0
    assert list(findings()) == []


def test_the_agent_is_told_to_come_back_and_gets_no_leave(desk: Desk) -> None:
    attempt = desk.posted()
    assert lifecycle.standing_of(attempt).directive is Directive.IN_FLIGHT
    assert desk.agent_is_refused(attempt) is LeaveProblem.LEDGER_EXECUTES
    desk.sends()
    assert lifecycle.standing_of(make.fresh(attempt)).directive is Directive.DONE


def test_it_sends_with_what_attempt_and_live_keys_allow_together(desk: Desk) -> None:
    attempt = desk.posted()
    revoke(desk)
    narrow, other = make.key(desk.people.agent, "tool:refund.*"), make.key(desk.people.agent, "tool:mail.*")
    expired = make.key(desk.people.agent, "tool:*", days=-1)
    desk.sends()
    assert make.fresh(attempt).scopes == ["tool:refund.*"]
    (dispatched,) = events(attempt, "attempt.dispatched")
    assert dispatched.data["keys"] == [narrow.key_id]
    assert not {other.key_id, expired.key_id} & set(dispatched.data["keys"])


def without_keys(desk: Desk) -> None:
    revoke(desk)


def with_a_key_that_only_reads(desk: Desk) -> None:
    ApiKey.objects.update(verbs=["read"])


def with_keys_for_other_tools(desk: Desk) -> None:
    ApiKey.objects.update(scopes=["tool:email.*"])


def with_the_tenant_suspended(desk: Desk) -> None:
    Tenant.objects.update(suspended_at=database_clock())


def with_the_tool_forbidden(desk: Desk) -> None:
    make.policy(desk.people.tenant, tools={make.TICKET: {"effect": "write"}})


def with_the_agent_off(desk: Desk) -> None:
    type(desk.people.agent).objects.update(is_active=False)


REFUSALS: list[tuple[Callable[[Desk], None], str]] = [
    (without_keys, "key-revoked"),
    (with_a_key_that_only_reads, "key-revoked"),
    (with_keys_for_other_tools, "scope-refused"),
    (with_the_tenant_suspended, "tenant-suspended"),
    (with_the_tool_forbidden, "policy-refused"),
    (with_the_agent_off, "agent-inactive"),
]


@pytest.mark.parametrize(("happens", "reason"), REFUSALS, ids=[h.__name__ for h, _ in REFUSALS])
def test_what_is_no_longer_allowed_is_not_sent_and_refused_once_in_the_history(
    desk: Desk, happens: Callable[[Desk], None], reason: str
) -> None:
    attempt = desk.posted()
    happens(desk)
    assert (desk.sends().sends_refused, desk.sends().sends_refused) == (1, 0), "not asked for again at once"
    assert desk.sends_what_waits().sends_refused == 1
    (refused,) = events(attempt, "attempt.leave_refused")
    assert (refused.actor_kind, refused.data["reasons"]) == ("sender", [reason])
    assert (make.fresh(attempt).state, desk.effects(attempt)) == ("INTENT_RECORDED", 0)


def test_a_new_key_lets_it_go(desk: Desk) -> None:
    attempt = desk.posted()
    revoke(desk)
    desk.sends()
    make.key(desk.people.agent)
    desk.sends_what_waits()
    assert (make.fresh(attempt).state, desk.effects(attempt)) == ("OUTCOME_CONFIRMED", 1)


@pytest.mark.parametrize(("happens", "reason"), REFUSALS[:4], ids=[h.__name__ for h, _ in REFUSALS[:4]])
def test_what_is_taken_back_after_leave_is_not_sent(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, happens: Callable[[Desk], None], reason: str
) -> None:
    attempt = desk.posted()
    between(monkeypatch, "sender.leave_committed", lambda: happens(desk))
    desk.sends()
    attempt = make.fresh(attempt)
    assert (attempt.state, attempt.failure, desk.effects(attempt)) == ("FAILED_RETRYABLE", "not_connected", 0)
    (said,) = events(attempt, "attempt.outcome_reported")
    assert reason in said.data["message"]


def test_a_lease_that_ran_out_before_sending_sends_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = desk.posted()

    def time_passes() -> None:
        Attempt.objects.filter(pk=attempt.pk).update(lease_until=database_clock())
        assert sweep_once().leases == 1

    between(monkeypatch, "sender.leave_committed", time_passes)
    desk.sends()
    assert desk.effects(attempt) == 0
    assert make.fresh(attempt).state == "FAILED_RETRYABLE", "the sender itself proves that nothing was sent"


def test_a_lease_that_ran_out_after_its_last_look_sends_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped and continued there, it has only the time it was given, which says nothing of the provider."""
    desk.rule(dispatch_timeout_s=0.5)
    attempt = desk.posted()

    def time_passes() -> None:
        until = make.fresh(attempt).lease_until
        assert until is not None
        wait_until(lambda: database_clock() > until, within_s=10, what="the lease is over")

    between(monkeypatch, "sender.before_send", time_passes)
    desk.sends()
    assert desk.effects(attempt) == 0
    assert make.fresh(attempt).state == "FAILED_RETRYABLE", "the sender itself proves that nothing was sent"
    assert Provider.objects.get(name="bank").failures == 0


def test_a_rule_that_wants_a_person_holds_it_and_sends_after_the_approval(desk: Desk) -> None:
    attempt = desk.posted()
    desk.rule(review="always")
    desk.sends()
    attempt = make.fresh(attempt)
    assert (attempt.is_held, attempt.reason) == (True, "policy_changed")
    item = make.item_of(attempt)
    durable(lambda: lifecycle.approve(item_id=item.pk, by=desk.people.approver, why="checked"))
    assert desk.sends_what_waits().sent == 1
    attempt = make.fresh(attempt)
    assert (attempt.state, desk.effects(attempt)) == ("OUTCOME_CONFIRMED", 1)
    assert attempt.approval_use.approval.used_at is not None


def test_who_sends_is_decided_by_the_rule_in_force(desk: Desk) -> None:
    desk.rule(executor="agent")
    agents_own = desk.posted()
    desk.rule()
    assert desk.agent_is_refused(agents_own) is LeaveProblem.LEDGER_EXECUTES
    assert lifecycle.standing_of(agents_own).directive is Directive.IN_FLIGHT
    desk.sends()
    assert (make.fresh(agents_own).state, desk.effects(agents_own)) == ("OUTCOME_CONFIRMED", 1)
    ledgers_own = desk.posted()
    desk.rule(executor="agent")
    assert desk.sends().sent == 0
    assert lifecycle.standing_of(ledgers_own).directive is Directive.DISPATCH
    assert make.send(desk.people.key, ledgers_own).state == "DISPATCHED"


def test_an_intent_of_which_only_the_hash_is_known_is_not_taken(desk: Desk) -> None:
    answer = make.posted(desk.people.key, make.intent_of(REFUND, hash_only=True))
    assert answer.kind is IntentKind.ARGS_REQUIRED
    assert not Attempt.objects.exists()


def test_a_hash_only_intent_is_held_when_the_ledger_is_to_send_it(desk: Desk) -> None:
    desk.rule(executor="agent")
    attempt = desk.posted(hash_only=True)
    desk.rule()
    assert desk.sends().sent == 0
    attempt = make.fresh(attempt)
    assert (attempt.is_held, attempt.reason) == (True, "policy_changed")


def test_where_nobody_listens_it_is_sent_again_under_the_same_key(desk: Desk) -> None:
    attempt = desk.posted()
    with desk.nobody_listening():
        desk.sends()
    attempt = make.fresh(attempt)
    assert (attempt.state, attempt.failure) == ("FAILED_RETRYABLE", "not_connected")
    assert lifecycle.standing_of(attempt).directive is Directive.IN_FLIGHT
    assert desk.sends().sent == 0, "its back-off is not over"
    desk.sends_what_waits()
    after = newest(attempt)
    assert (after.number, after.state, after.idempotency_key) == (
        2,
        "OUTCOME_CONFIRMED",
        attempt.idempotency_key,
    )
    assert (make.fresh(attempt).state, desk.effects(attempt)) == ("SUPERSEDED", 1)
    assert list(findings()) == []


def test_a_configured_refusal_is_the_end(desk: Desk) -> None:
    attempt = desk.posted()
    desk.provider.send("refunds", {"amount": 0}, key=attempt.idempotency_key)
    desk.sends()
    attempt = make.fresh(attempt)
    assert (attempt.state, attempt.failure, desk.effects(attempt)) == ("FAILED", "refused", 0)


@pytest.mark.parametrize("mode", ["accept_then_drop", "truncated"])
def test_what_was_sent_and_not_answered_is_found(desk: Desk, mode: str) -> None:
    attempt = desk.posted()
    desk.provider.set_mode(mode, on="send", times=1)
    desk.sends()
    assert make.fresh(attempt).state == "UNKNOWN"
    assert desk.sends_what_waits().sent == 0, "no permission to try again"
    reconcile_once()
    attempt = make.fresh(attempt)
    assert (attempt.state, attempt.confirmed_by, desk.effects(attempt)) == ("OUTCOME_CONFIRMED", "lookup", 1)


@pytest.mark.parametrize("idempotent", [True, False])
def test_what_did_not_arrive_is_sent_again_as_the_rule_allows(desk: Desk, idempotent: bool) -> None:
    desk.rule(idempotent=idempotent, key_ttl_s=3600 if idempotent else 0)
    attempt = desk.posted()
    desk.sends_in_vain(attempt)
    assert make.fresh(attempt).state == ("FAILED_RETRYABLE" if idempotent else "MANUAL_REVIEW")
    if not idempotent:
        assert desk.sends_what_waits().sent == 0
        item = make.item_of(attempt)
        durable(lambda: lifecycle.approve(item_id=item.pk, by=desk.people.approver, why="checked"))
        assert lifecycle.standing_of(make.fresh(attempt)).directive is Directive.IN_FLIGHT
    assert desk.sends_what_waits().sent == 1
    assert (newest(attempt).number, newest(attempt).state) == (2, "OUTCOME_CONFIRMED")
    assert desk.effects(attempt) == 1
    assert list(findings()) == []


def test_an_agent_cannot_say_that_nothing_happened_of_what_the_ledger_sends(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = desk.posted()

    def agent_says() -> None:
        said = {"no_effect": True, "retryable": True, "error_class": "not_connected"}
        assert make.reported(desk.people.key, attempt, "failed", **said).state == "UNKNOWN"

    between(monkeypatch, "sender.sent", agent_says)
    desk.sends()
    assert (make.fresh(attempt).state, desk.effects(attempt)) == ("OUTCOME_CONFIRMED", 1)


def test_a_provider_that_cannot_send_is_said_once_and_tried_again(desk: Desk) -> None:
    attempt = desk.posted()
    config = Provider.objects.get(name="bank").config
    config.pop("send")
    Provider.objects.filter(name="bank").update(config=config)
    assert desk.sends().cannot_send == 1
    Provider.objects.filter(name="bank").delete()
    assert desk.sends_what_waits().cannot_send == 1
    (refused,) = events(attempt, "attempt.leave_refused")
    assert refused.data["reasons"] == ["provider-cannot-send"]
    desk.prepare()
    desk.sends_what_waits()
    assert make.fresh(attempt).state == "OUTCOME_CONFIRMED"


def test_an_outage_costs_one_attempt_a_pass(desk: Desk) -> None:
    attempts = [desk.posted() for _ in range(4)]
    desk.provider.set_mode("drop_before", on="send")
    report = desk.sends()
    assert (report.sent, report.resting) == (1, 3)
    assert desk.sends().sent == 0, "the others rest for a while"
    desk.provider.set_mode("honest")
    assert desk.sends_what_waits().sent == 3
    assert sorted(make.fresh(attempt).state for attempt in attempts) == [
        *["OUTCOME_CONFIRMED"] * 3,
        "UNKNOWN",
    ]


def test_an_outage_that_outlasts_a_pass_keeps_no_other_waiting(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A send that hangs takes the whole pass: the next one must not begin with the same provider."""
    desk.add_second_provider()
    gone, stood_still = [desk.posted() for _ in range(3)], [0.0]
    other = make.recorded(desk.people.key, SECOND, args={"amount": 1, "currency": "EUR"})
    monkeypatch.setattr(resend, "monotonic_s", lambda: monotonic_s() + stood_still[0])
    between(monkeypatch, "sender.sent", lambda: stood_still.append(stood_still.pop() + 3600.0))
    with desk.nobody_listening():
        assert (desk.sends().sent, make.fresh(other).state) == (1, "INTENT_RECORDED")
        report = desk.sends()
    assert (report.sent, report.resting) == (1, 2)
    assert make.fresh(other).state == "OUTCOME_CONFIRMED"
    assert [make.fresh(one).state for one in gone] == ["FAILED_RETRYABLE", *["INTENT_RECORDED"] * 2]


def test_a_provider_that_wants_to_be_left_alone_is(desk: Desk) -> None:
    first, second = desk.posted(), desk.posted()
    desk.provider.set_mode("too_many_requests", on="send", times=1)
    desk.sends()
    assert desk.sends_what_waits().resting == 1
    assert (make.fresh(first).state, make.fresh(second).state) == ("UNKNOWN", "INTENT_RECORDED")


def test_nothing_of_the_agents_own_is_touched(desk: Desk) -> None:
    make.policy(desk.people.tenant, tools={REFUND: {"effect": "payment"}, "refund.own": {"effect": "read"}})
    attempt = make.recorded(desk.people.key, REFUND)
    make.policy(desk.people.other_tenant, tools={REFUND: {"effect": "payment"}})
    before = Event.objects.count()
    assert desk.sends().sends_refused == 0
    assert (make.fresh(attempt).state, Event.objects.count()) == ("INTENT_RECORDED", before)


def test_what_is_cancelled_is_not_sent(desk: Desk) -> None:
    attempt = desk.posted()
    durable(
        lambda: lifecycle.cancel_operation(
            key=desk.people.key, operation_id=attempt.operation_id, reason="no longer wanted"
        )
    )
    assert desk.sends().sent == 0
    assert (make.fresh(attempt).state, desk.effects(attempt)) == ("CANCELLED", 0)


def test_one_pass_ends_and_says_that_there_is_more(desk: Desk) -> None:
    for _ in range(3):
        desk.posted()
    report = resend.send_once(at_most=2)
    assert (report.sent, report.more) == (2, True)
    assert (resend.send_once(at_most=2).sent, Attempt.objects.exclude(state="OUTCOME_CONFIRMED").count()) == (
        1,
        0,
    )


def test_it_pays_from_the_run_and_stops_at_the_limit(desk: Desk) -> None:
    desk.rule(cost={"amount": "/amount", "unit": "/currency"})
    limits = {"EUR": Decimal("12.50")}
    durable(lambda: lifecycle.open_run(key=desk.people.key, name="r", limits=limits))
    first, second = (desk.posted(run="r", args={"amount": 12, "currency": name}) for name in ("EUR", "eur"))
    desk.sends()
    account = BudgetAccount.objects.get(unit="EUR")
    assert (account.reserved, account.spent) == (0, 12)
    assert (desk.effects(first), desk.effects(second)) == (1, 0)
    (refused,) = events(second, "attempt.leave_refused")
    assert refused.data["because"] == ["EUR: limit 12.50, reserved 0, spent 12, wanted 12"]
    assert list(findings()) == []


def test_stopped_beyond_its_lease_right_before_it_sends_it_sends_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease is counted from when the database was asked, also while this process stands still."""
    attempt, stood_still = desk.posted(), [0.0]
    monkeypatch.setattr(resend, "monotonic_s", lambda: monotonic_s() + stood_still[0])
    between(monkeypatch, "sender.before_send", lambda: stood_still.append(stood_still.pop() + 3600.0))
    desk.sends()
    assert desk.effects(attempt) == 0
    assert newest(attempt).state == "FAILED_RETRYABLE"
