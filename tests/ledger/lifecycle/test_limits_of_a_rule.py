"""The limits a rule sets to sending again: the key window, the attempts, and the wait for an agent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pgtrigger
import pytest

from ledger import lifecycle
from ledger.lifecycle import LeaveRefused, extend_lease
from ledger.lifecycle.timers import end_wait_for_agent
from ledger.models import Attempt
from ledger.rules.looked_up import LookedUpKind
from ledger.transactions import database_clock, durable
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db

SEND = "limited.send"
RULE: dict[str, Any] = {"effect": "write", "idempotent": True, "key_ttl_s": 3_600, "provider": "bank"}
REFUSED: dict[str, Any] = {"no_effect": True, "error_class": "refused", "retryable": True}
NO_LOOK_UP: dict[str, Any] = {"effect": "write", "idempotent": True, "key_ttl_s": 3_600}
NO_KEYS: dict[str, Any] = {"effect": "write"}
NOBODY_THERE: dict[str, Any] = {**REFUSED, "error_class": "not_connected"}


@pytest.fixture
def people() -> Cast:
    return cast()


def recorded(people: Cast, *, expires_in_s: float | None = None, **changed: Any) -> Attempt:
    return recorded_under(people, {**RULE, **changed}, expires_in_s=expires_in_s)


def recorded_under(people: Cast, rule: dict[str, Any], *, expires_in_s: float | None = None) -> Attempt:
    make.policy(people.tenant, by=people.admin, tools={SEND: rule})
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


def not_connected(people: Cast, attempt: Attempt) -> Attempt:
    """Sent, and it never got there: its agent knows that, and its back-off is over."""
    attempt = make.reported(people.key, make.send(people.key, attempt), "failed", **NOBODY_THERE)
    assert attempt.state == "FAILED_RETRYABLE"
    long_ago(attempt, send_again_at=None)
    return attempt


def approved(people: Cast, attempt: Attempt) -> Attempt:
    item = make.item_of(attempt).pk
    durable(lambda: lifecycle.approve(item_id=item, by=people.approver, why="checked"))
    return make.fresh(attempt)


def to_the_desk(people: Cast, attempt: Attempt) -> tuple[str, str]:
    assert isinstance(make.ask_leave(people.key, attempt), LeaveRefused)
    attempt = make.fresh(attempt)
    return attempt.state, attempt.reason


def test_what_follows_an_absent_rests_on_it_too(people: Cast) -> None:
    """That the second did not get there says nothing of the first, which only a look-up did not find."""
    attempt = not_connected(people, proven_absent(people, recorded(people)))
    again = not_connected(people, attempt)
    assert (again.number, again.idempotency_key) == (3, attempt.idempotency_key), "inside the key window"
    with pgtrigger.ignore():  # the first send's time is set once: here an hour passes
        long_ago(again, key_first_sent_at=database_clock() - timedelta(seconds=3_600))
    assert to_the_desk(people, again) == ("MANUAL_REVIEW", "key_window_over")


@pytest.mark.parametrize("rule", [NO_LOOK_UP, NO_KEYS], ids=["keys", "no_keys"])
def test_an_approval_out_of_doubt_is_spent_where_nobody_was_there(people: Cast, rule: dict[str, Any]) -> None:
    """Only the provider's key still protects what was approved; without one a person is asked again."""
    first = make.reported(people.key, make.send(people.key, recorded_under(people, rule)), "unknown")
    again = not_connected(people, approved(people, make.looked_up(first, LookedUpKind.NO_LOOKUP)))
    if rule is NO_KEYS:
        assert to_the_desk(people, again) == ("MANUAL_REVIEW", "key_window_over")
        again = approved(people, again)
    assert make.send(people.key, again).number == 3


def test_what_never_got_there_needs_nobody(people: Cast) -> None:
    attempt = recorded_under(people, NO_KEYS)
    for number in (1, 2, 3):
        attempt = not_connected(people, attempt)
        assert attempt.number == number


def test_what_people_see_first_they_see_before_each_send(people: Cast) -> None:
    attempt = recorded_under(people, {**NO_LOOK_UP, "review": "always"})
    for number in (1, 2, 3):
        attempt = not_connected(people, approved(people, attempt))
        assert attempt.number == number
        assert to_the_desk(people, attempt) == ("MANUAL_REVIEW", "approval_required")


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
