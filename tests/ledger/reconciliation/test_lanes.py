"""Who is asked next: no provider waits for another, and one that is away is probed by one at a time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ledger import lifecycle
from ledger.models import Attempt, Provider
from ledger.reconciliation import health, resend
from ledger.reconciliation.claims import AWAY_AFTER, LOOK_UP_LEASE, claim_in, due_lanes
from ledger.reconciliation.health import note_answer
from ledger.reconciliation.turns import SharedTurns
from ledger.rules.looked_up import LookedUpKind
from ledger.transactions import database_clock, durable
from tests.ledger.reconciliation.desk import OWN, Desk
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def people() -> Cast:
    made = cast()
    for name in ("mail", "bank"):
        Provider.objects.create(tenant=made.tenant, name=name, adapter="http", config={})
    return made


def bank() -> Provider:
    return Provider.objects.get(name="bank")


def away(times: int = AWAY_AFTER) -> None:
    for _ in range(times):
        note_answer(bank(), LookedUpKind.UNAVAILABLE)


def test_each_provider_of_each_tenant_has_its_lane(people: Cast) -> None:
    make.policy(people.other_tenant)
    theirs = make.key(make.agent(people.other_tenant, people.stranger))
    for key, tool in [(people.key, make.MAIL), (people.key, make.REFUND), (theirs, make.REFUND)]:
        for _ in range(2):
            make.unknown(key, tool)
    lanes = {(lane.tenant_id, lane.provider) for lane in due_lanes()}
    assert lanes == {
        (people.tenant.pk, "mail"),
        (people.tenant.pk, "bank"),
        (people.other_tenant.pk, "bank"),
    }


def test_attempts_of_an_older_policy_are_in_the_lane_of_the_same_provider(people: Cast) -> None:
    make.unknown(people.key, make.REFUND)
    make.policy(people.tenant, tools={make.REFUND: {**make.TOOLS[make.REFUND], "settle_s": 5}})
    make.unknown(people.key, make.REFUND)
    (lane,) = due_lanes()
    assert Attempt.objects.filter(lane.attempts).count() == 2
    assert len(claim_in(lane)) == len(claim_in(lane)) == 1
    assert claim_in(lane) == []


def test_one_answer_that_nobody_could_read_stops_nobody(people: Cast) -> None:
    make.unknown(people.key, make.REFUND)
    away(AWAY_AFTER - 1)
    (lane,) = due_lanes()
    assert claim_in(lane)


def test_a_provider_that_is_away_is_probed_by_one_at_a_time(people: Cast) -> None:
    for _ in range(3):
        make.unknown(people.key, make.REFUND)
    away()
    (lane,) = due_lanes()
    assert claim_in(lane, at_most=3) == []
    Provider.objects.filter(name="bank").update(probe_at=database_clock())
    assert len(claim_in(lane, at_most=3)) == 1
    assert claim_in(lane, at_most=3) == [], "whoever probes may still be waiting for the answer"
    Provider.objects.filter(name="bank").update(probe_at=database_clock())
    assert len(claim_in(lane, at_most=3)) == 1, "or is dead"


def test_a_probe_is_never_far_away(people: Cast) -> None:
    for _ in range(40):
        away(1)
        probe_at = bank().probe_at
        assert probe_at is not None
        assert timedelta(0) < probe_at - database_clock() <= LOOK_UP_LEASE


def test_one_that_is_away_costs_the_others_nothing(people: Cast) -> None:
    make.unknown(people.key, make.REFUND)
    make.unknown(people.key, make.MAIL)
    away()
    claimed = {lane.provider: len(claim_in(lane)) for lane in due_lanes()}
    assert claimed == {"bank": 0, "mail": 1}


def test_the_first_readable_answer_makes_all_due(people: Cast) -> None:
    attempts = [make.unknown(people.key, make.REFUND) for _ in range(3)]
    other = make.unknown(people.key, make.MAIL)
    later = database_clock() + timedelta(hours=1)
    Attempt.objects.update(next_check_at=later)
    away()
    note_answer(bank(), LookedUpKind.ABSENT)
    assert all(make.fresh(attempt).next_check_at != later for attempt in attempts)
    assert make.fresh(other).next_check_at == later
    assert (bank().unavailable_since, bank().probe_at, bank().failures) == (None, None, 0)


def test_what_is_due_already_keeps_its_order(people: Cast) -> None:
    attempts = [make.unknown(people.key, make.REFUND) for _ in range(3)]
    before = [make.fresh(attempt).next_check_at for attempt in attempts]
    away()
    note_answer(bank(), LookedUpKind.ABSENT)
    assert [make.fresh(attempt).next_check_at for attempt in attempts] == before


def test_they_are_made_due_in_small_steps(people: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is beyond the limit comes at its own time."""
    monkeypatch.setattr(health, "STEP", 2)
    monkeypatch.setattr(health, "MOST_STEPS", 2)
    for _ in range(5):
        make.unknown(people.key, make.REFUND)
    later = database_clock() + timedelta(hours=1)
    Attempt.objects.update(next_check_at=later)
    away()
    note_answer(bank(), LookedUpKind.ABSENT)
    assert Attempt.objects.filter(next_check_at=later).count() == 1


@pytest.mark.parametrize("kind", [LookedUpKind.NO_LOOKUP, LookedUpKind.ADAPTER_FAILED])
def test_what_the_provider_did_not_say_is_no_sign_of_its_health(people: Cast, kind: LookedUpKind) -> None:
    attempt = make.unknown(people.key, make.REFUND)
    later = database_clock() + timedelta(hours=1)
    Attempt.objects.update(next_check_at=later)
    away()
    note_answer(bank(), LookedUpKind.UNAVAILABLE, refused_credential="key")
    before = bank()
    note_answer(before, kind)
    after = bank()
    assert (after.unavailable_since, after.failures) == (before.unavailable_since, before.failures)
    assert (after.credential_refused_since is None, after.last_answer_at) == (False, before.last_answer_at)
    assert make.fresh(attempt).next_check_at == later


def test_one_bad_look_up_does_not_make_everything_due_again(people: Cast) -> None:
    """Else one attempt that can never be read and one that is in progress would take turns without end."""
    attempt = make.unknown(people.key, make.REFUND)
    later = database_clock() + timedelta(hours=1)
    Attempt.objects.update(next_check_at=later)
    away(AWAY_AFTER - 1)
    note_answer(bank(), LookedUpKind.FOUND)
    assert make.fresh(attempt).next_check_at == later


def test_one_whose_look_up_keeps_failing_comes_after_the_others(people: Cast) -> None:
    bad = make.unknown(people.key, make.REFUND)
    good = make.unknown(people.key, make.REFUND)
    Attempt.objects.filter(pk=bad.pk).update(lookup_failures=3)
    (lane,) = due_lanes()
    claims = claim_in(lane) + claim_in(lane)
    assert [claim.attempt_id for claim in claims] == [good.pk, bad.pk]


def test_turns_are_spaced_for_all_together(people: Cast) -> None:
    one, other = SharedTurns(), SharedTurns()
    waits = [turns.take("host", 10.0, 60.0) or 0.0 for turns in (one, other, one)]
    assert waits[0] == 0
    assert [round(wait, -1) for wait in waits] == [0, 10, 20]
    assert 20 < other.next_in_s("host") <= 30
    assert other.next_in_s("another host") == 0


def test_who_wants_to_be_left_alone_is_left_alone_by_all(people: Cast) -> None:
    SharedTurns().hold("host PROVIDER_KEY", 30.0)
    SharedTurns().hold("host PROVIDER_KEY", 1.0)
    assert 20 < SharedTurns().next_in_s("host PROVIDER_KEY") <= 30


def test_what_agents_send_takes_no_place_of_what_the_ledger_sends(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its agents are down, and it was there first: by an exact name, by a rule of before, and approved."""
    agents, manual = {**OWN, "executor": "agent"}, "refund.manual"
    held = {**agents, "review": "always"}
    make.policy(desk.people.tenant, tools={"refund.*": OWN, manual: agents, "refund.held": held})
    for _ in range(2):
        make.recorded(desk.people.key, manual, args={})
    former = make.recorded(desk.people.key, "refund.former", args={})
    approved = make.recorded(desk.people.key, "refund.held", args={})
    item = make.item_of(approved).pk
    durable(lambda: lifecycle.approve(item_id=item, by=desk.people.approver, why="checked"))
    tools = {"refund.*": OWN, manual: agents, "refund.former": agents, "refund.held": held}
    make.policy(desk.people.tenant, tools=tools)
    attempt = desk.posted()
    monkeypatch.setattr(resend, "LOOKED_AT", 1)
    assert desk.sends().sent == 1
    assert make.fresh(attempt).state == "OUTCOME_CONFIRMED"
    assert {make.fresh(one).state for one in (former, approved)} == {"INTENT_RECORDED"}


def test_a_turn_that_comes_too_late_is_not_taken() -> None:
    turns = SharedTurns()
    assert [turns.take("host", 10.0, within_s) for within_s in (5.0, 5.0, 0.0)] == [0.0, None, None]
    assert 5 < turns.next_in_s("host") <= 10
    wait_s = turns.take("host", 10.0, float("inf"))
    assert wait_s is not None
    assert 5 < wait_s <= 10
