"""The limits a rule sets to sending again: the key window, the attempts, and the wait for an agent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pgtrigger
import pytest

from ledger.lifecycle import LeaveRefused, extend_lease
from ledger.lifecycle.timers import end_wait_for_agent
from ledger.models import Attempt
from ledger.rules.reconcile import LookedUpKind
from ledger.transactions import database_clock, durable
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db

SEND = "limited.send"
RULE: dict[str, Any] = {"effect": "write", "idempotent": True, "key_ttl_s": 3_600, "provider": "bank"}
REFUSED: dict[str, Any] = {"no_effect": True, "error_class": "refused", "retryable": True}


@pytest.fixture
def people() -> Cast:
    return cast()


def recorded(people: Cast, *, expires_in_s: float | None = None, **changed: Any) -> Attempt:
    make.policy(people.tenant, by=people.admin, tools={SEND: {**RULE, **changed}})
    expires_at = database_clock() + timedelta(seconds=expires_in_s) if expires_in_s else None
    return make.recorded(people.key, SEND, args={"n": 1}, expires_at=expires_at)


def long_ago(attempt: Attempt, **columns: Any) -> None:
    Attempt.objects.filter(pk=attempt.pk).update(**columns)


def proven_absent(people: Cast, attempt: Attempt) -> Attempt:
    """Sent, lost, and twice not found after its settle window."""
    attempt = make.reported(people.key, make.send(people.key, attempt), "unknown")
    past = database_clock() - timedelta(minutes=2)
    long_ago(attempt, lease_ended_at=past)
    make.looked_up(attempt, LookedUpKind.ABSENT)
    long_ago(attempt, last_negative_at=past)
    attempt = make.looked_up(attempt, LookedUpKind.ABSENT)
    long_ago(attempt, send_again_at=None)
    return attempt


def test_a_key_window_that_closes_before_leave_brings_it_to_a_person(people: Cast) -> None:
    attempt = proven_absent(people, recorded(people))
    assert attempt.state == "FAILED_RETRYABLE"
    with pgtrigger.ignore():  # the first send's time is set once: here an hour passes
        long_ago(attempt, key_first_sent_at=database_clock() - timedelta(seconds=3_600))
    refused = make.ask_leave(people.key, attempt)
    assert isinstance(refused, LeaveRefused)
    assert refused.reasons == ("key-window-over",)
    attempt = make.fresh(attempt)
    assert (attempt.state, attempt.reason) == ("MANUAL_REVIEW", "key_window_over")


def test_inside_the_key_window_it_is_sent_again_with_the_same_key(people: Cast) -> None:
    attempt = proven_absent(people, recorded(people))
    again = make.send(people.key, attempt)
    assert (again.number, again.generation) == (2, attempt.generation)
    assert again.idempotency_key == attempt.idempotency_key
    assert again.key_first_sent_at == attempt.key_first_sent_at


def test_the_lease_of_a_repeated_send_ends_with_the_key_window(people: Cast) -> None:
    """What is sent after the provider forgot the key is no repetition to it, but a second effect."""
    attempt = proven_absent(people, recorded(people, dispatch_timeout_s=600))
    with pgtrigger.ignore():  # the first send's time is set once: here 55 minutes pass
        long_ago(attempt, key_first_sent_at=database_clock() - timedelta(minutes=55))
    again = make.send(people.key, attempt)
    assert again.key_first_sent_at is not None
    window_ends_at = again.key_first_sent_at + timedelta(seconds=3_600)
    assert again.lease_until == window_ends_at
    worker, epoch = again.worker_id, again.lease_epoch
    until = durable(
        lambda: extend_lease(key=people.key, attempt_id=again.pk, worker_id=worker, lease_epoch=epoch)
    )
    assert until == window_ends_at


def test_the_last_attempt_used_brings_it_to_a_person(people: Cast) -> None:
    attempt = recorded(people, max_attempts=2)
    for number in (1, 2):
        attempt = make.send(people.key, attempt)
        assert attempt.number == number
        attempt = make.reported(people.key, attempt, "failed", **REFUSED)
        long_ago(attempt, send_again_at=None)
    refused = make.ask_leave(people.key, attempt)
    assert isinstance(refused, LeaveRefused)
    assert refused.reasons == ("attempts-used-up",)
    attempt = make.fresh(attempt)
    assert (attempt.state, attempt.reason) == ("MANUAL_REVIEW", "attempts_used_up")


def test_an_absent_after_the_last_attempt_is_for_a_person(people: Cast) -> None:
    attempt = proven_absent(people, recorded(people, max_attempts=1))
    assert (attempt.state, attempt.reason) == ("MANUAL_REVIEW", "attempts_used_up")


def test_nobody_comes_within_start_within_s(people: Cast) -> None:
    attempt = recorded(people, start_within_s=60)
    assert attempt.start_by == attempt.created_at + timedelta(seconds=60)
    assert not durable(lambda: end_wait_for_agent(attempt_id=attempt.pk))
    long_ago(attempt, start_by=database_clock())
    assert durable(lambda: end_wait_for_agent(attempt_id=attempt.pk))
    attempt = make.fresh(attempt)
    assert (attempt.state, attempt.failure, attempt.failed_by) == ("FAILED", "not_started", "not_started")


def test_start_within_s_counts_again_from_a_proof_of_no_effect(people: Cast) -> None:
    attempt = make.send(people.key, recorded(people, start_within_s=60))
    assert attempt.start_by is None
    attempt = make.reported(people.key, attempt, "failed", **REFUSED)
    assert attempt.start_by == attempt.entered_state_at + timedelta(seconds=60)


def test_its_own_expiry_goes_before_start_within_s(people: Cast) -> None:
    attempt = recorded(people, start_within_s=60, expires_in_s=3_000)
    assert attempt.start_by == attempt.expires_at
