"""An agent's real process killed at each boundary, restarted the same way, and the effects counted there."""

from __future__ import annotations

import pytest

from ledger import lifecycle
from ledger.transactions import durable
from tests.crash.world import MAIL, World
from tests.support import make
from tests.support.processes import wait_until

pytestmark = [pytest.mark.crash, pytest.mark.slow]


def test_killed_after_the_intent_it_sends_once_later(world: World) -> None:
    world.killed_at("recorded")
    assert world.effects == 0
    told, ended = world.restarted()
    assert (told, ended["ended"], world.effects) == ("dispatch", "sent", 1)
    assert world.history() == [
        ("attempt.intent", "agent"),
        ("attempt.dispatched", "agent"),
        ("attempt.provider_request", "agent"),
        ("attempt.outcome_reported", "agent"),
        ("attempt.confirmed", "agent"),
        ("operation.settled", "agent"),
    ]


def test_killed_after_leave_before_sending_it_sends_with_the_same_key(world: World) -> None:
    before = world.killed_at("leave")
    assert world.restarted() == ("in_flight", {"ended": "DuplicateOperation"})
    world.sweep_until("UNKNOWN")
    assert world.restarted() == ("reconcile", {"ended": "DuplicateOperation"})
    world.reconcile_until("FAILED_RETRYABLE")
    assert world.restarted()[0] == "in_flight", "its back-off is not over"
    assert world.effects == 0
    world.end_back_off()
    told, ended = world.restarted()
    assert (told, ended["ended"], ended["key"]) == ("dispatch", "sent", before["key"])
    assert world.effects == 1
    states = world.operation.attempts.order_by("number").values_list("state", flat=True)
    assert list(states) == ["SUPERSEDED", "OUTCOME_CONFIRMED"]
    assert world.history() == [
        ("attempt.intent", "agent"),
        ("attempt.dispatched", "agent"),
        ("attempt.unknown", "system"),
        ("attempt.looked_up", "reconciler"),
        ("attempt.looked_up", "reconciler"),
        ("attempt.failed_retryable", "reconciler"),
        ("attempt.superseded", "agent"),
        ("attempt.intent", "agent"),
        ("attempt.dispatched", "agent"),
        ("attempt.provider_request", "agent"),
        ("attempt.outcome_reported", "agent"),
        ("attempt.confirmed", "agent"),
        ("operation.settled", "agent"),
    ]


def test_killed_after_the_effect_before_any_answer_it_is_found(world: World) -> None:
    world.killed_while_sending("accept_then_hang")
    assert world.effects == 1
    assert world.restarted()[0] == "in_flight"
    world.sweep_until("UNKNOWN")
    assert world.restarted()[0] == "reconcile"
    world.reconcile_until("OUTCOME_CONFIRMED")
    told, ended = world.restarted()
    assert (told, ended["ended"], ended["result_ref"]) == ("done", "done", world.newest.result_ref)
    assert (world.newest.confirmed_by, world.effects) == ("lookup", 1)


def test_an_effect_that_appears_after_it_was_found_absent_stays_the_only_one(world: World) -> None:
    world.killed_while_sending("hang")
    world.sweep_until("UNKNOWN")
    world.reconcile_until("FAILED_RETRYABLE")
    assert world.effects == 0
    world.provider.release()
    wait_until(lambda: world.effects == 1, within_s=10, what="the late effect")
    world.end_back_off()
    told, ended = world.restarted()
    assert (told, ended["ended"]) == ("dispatch", "sent")
    assert world.effects == 1


@pytest.mark.parametrize("point", ["answered", "named"])
def test_killed_after_the_answer_before_its_outcome_is_reported_it_is_found(world: World, point: str) -> None:
    world.killed_at(point)
    assert world.effects == 1
    world.sweep_until("UNKNOWN")
    assert world.restarted()[0] == "reconcile"
    world.reconcile_until("OUTCOME_CONFIRMED")
    assert world.restarted()[0] == "done"
    assert world.effects == 1


@pytest.mark.parametrize("mode", ["down", "server_error", "not_json", "too_many_requests"])
def test_an_outage_of_the_provider_never_leads_to_a_second_send(world: World, mode: str) -> None:
    world.killed_while_sending("accept_then_hang")
    world.provider.set_mode(mode, on="look_up", times=2)
    world.sweep_until("UNKNOWN")
    world.reconcile_until("OUTCOME_CONFIRMED")
    rows = list(world.newest.lookups.order_by("answered_at").values_list("row", flat=True))
    assert (rows[0], rows[-1], world.effects) == ("unavailable", "confirmed", 1)


def test_a_tool_without_keys_is_sent_again_only_by_a_person(world: World) -> None:
    world.tool = MAIL
    world.killed_at("leave")
    world.sweep_until("UNKNOWN")
    world.reconcile_until("MANUAL_REVIEW")
    attempt = world.newest
    assert (attempt.reason, make.item_of(attempt).owner_group.name) == ("not_idempotent", "Review desk")
    assert world.restarted() == ("hold", {"ended": "PendingReview"})
    assert world.effects == 0
    approver = world.people.approver
    durable(lambda: lifecycle.approve(item_id=make.item_of(attempt).pk, by=approver, why="not sent"))
    told, ended = world.restarted()
    assert (told, ended["ended"], world.effects) == ("dispatch", "sent", 1)
    assert world.restarted()[0] == "done"
    assert world.effects == 1
