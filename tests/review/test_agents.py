"""Agents change owners and keys by administrators' hands, and nobody approves what their own agent asks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pgtrigger
import pytest

from ledger.access import Grant
from ledger.ingest.auth import find_key
from ledger.lifecycle import LeaveGiven, LeaveRefused
from ledger.models import AccessChange, Agent, ApiKey, User, Vote
from ledger.queries.invariants import findings
from ledger.rules.authority import Reason
from ledger.rules.keys import parse_api_key
from ledger.rules.states import State
from ledger.rules.vocabulary import AccessChangeKind
from ledger.rules.voiding import VoidCause
from ledger.transactions import database_clock
from review import agents, decisions
from review.agents import AgentRefused, NewKey
from review.door import NotPermitted, NotVisible
from tests.support import make
from tests.support.cast import Cast

pytestmark = pytest.mark.django_db

WHY = "the old one is on a lost laptop"
GRANT = Grant(["tool:*", "target:*"], ["ingest", "read"], 30)
Change = Callable[[Cast, User], object]


def make_key(people: Cast, by: User, *, grant: Grant = GRANT, newest: str = "") -> NewKey:
    newest = newest or agents.newest_key(people.agent)
    return agents.create_key(by, "acme", people.agent.pk, grant=grant, newest=newest, why=WHY)


def rotate(people: Cast, by: User, *, overlap: timedelta = timedelta(hours=1), newest: str = "") -> NewKey:
    return agents.rotate_key(
        by,
        "acme",
        people.agent.pk,
        people.key.key_id,
        days=30,
        overlap=overlap,
        newest=newest or agents.newest_key(people.agent),
        why=WHY,
    )


CHANGES: dict[str, tuple[AccessChangeKind, Change]] = {
    "create": (
        AccessChangeKind.AGENT_CREATED,
        lambda _people, by: agents.create(by, "acme", name="mailer", owner="operator", why=WHY),
    ),
    "give": (
        AccessChangeKind.AGENT_GIVEN,
        lambda people, by: agents.give(by, "acme", people.agent.pk, owner="operator", why=WHY),
    ),
    "make a key": (AccessChangeKind.KEY_CREATED, make_key),
    "rotate": (AccessChangeKind.KEY_ROTATED, rotate),
    "switch off": (
        AccessChangeKind.AGENT_SWITCHED_OFF,
        lambda people, by: agents.switch(by, "acme", people.agent.pk, on=False, why=WHY),
    ),
    "revoke": (
        AccessChangeKind.KEY_REVOKED,
        lambda people, by: agents.revoke_key(by, "acme", people.agent.pk, people.key.key_id, why=WHY),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_administrator_does_it_and_it_stays_on_record(people: Cast, change: str) -> None:
    kind, press = CHANGES[change]
    press(people, people.admin)
    line = AccessChange.objects.get(by=people.admin)
    assert (line.kind, line.why, line.tenant) == (kind, WHY, people.tenant)
    assert line.agent is not None


@pytest.mark.parametrize("change", CHANGES)
def test_nobody_else_does(people: Cast, change: str) -> None:
    for other in (people.viewer, people.operator, people.approver, people.auditor):
        with pytest.raises(NotPermitted):
            CHANGES[change][1](people, other)
    for blind in people.blind:
        with pytest.raises(NotVisible):
            CHANGES[change][1](people, blind)
    assert not AccessChange.objects.exclude(by=None).exists()


def test_an_agent_of_another_tenant_is_not_there(people: Cast) -> None:
    other = make.agent(people.other_tenant, people.stranger)
    key = make.key(other)
    with pytest.raises(NotVisible):
        agents.give(people.admin, "acme", other.pk, owner="operator", why=WHY)
    with pytest.raises(NotVisible):
        agents.revoke_key(people.admin, "acme", people.agent.pk, key.key_id, why=WHY)
    key.refresh_from_db()
    assert key.revoked_at is None


def test_a_new_key_is_live_and_only_its_hash_is_stored(people: Cast) -> None:
    made = make_key(people, people.admin)
    asking = find_key(made.text)
    assert asking is not None
    assert (asking.key.key_id, asking.key.agent) == (made.key_id, people.agent)
    line = AccessChange.objects.get(by=people.admin)
    parts = parse_api_key(made.text)
    assert parts
    assert parts.secret not in str(line.data) + str(vars(asking.key))


def test_a_rotated_key_lives_beside_the_new_one_and_then_retires(people: Cast) -> None:
    made = rotate(people, people.admin)
    new, old = ApiKey.objects.get(key_id=made.key_id), ApiKey.objects.get(pk=people.key.pk)
    assert (new.scopes, new.verbs) == (old.scopes, old.verbs)
    assert old.revoked_at is None
    assert timedelta(minutes=59) < old.expires_at - database_clock() <= timedelta(hours=1)
    sent = make.recorded(old)
    assert isinstance(make.ask_leave(old, sent), LeaveGiven)
    waiting = make.recorded(old)
    ApiKey.objects.filter(pk=old.pk).update(expires_at=database_clock())
    old.refresh_from_db()
    assert isinstance(make.ask_leave(old, waiting), LeaveRefused)
    assert isinstance(make.ask_leave(new, waiting), LeaveGiven)
    assert make.reported(old, sent, "succeeded", result_ref="re_1").state == State.OUTCOME_CONFIRMED


def test_an_overlap_lengthens_no_life(people: Cast) -> None:
    soon = database_clock() + timedelta(minutes=5)
    ApiKey.objects.filter(pk=people.key.pk).update(expires_at=soon)
    rotate(people, people.admin, overlap=timedelta(days=7))
    assert ApiKey.objects.get(pk=people.key.pk).expires_at == soon


def test_a_second_press_makes_no_second_key(people: Cast) -> None:
    seen = agents.newest_key(people.agent)
    for press in (make_key, rotate):
        press(people, people.admin, newest=seen)
        with pytest.raises(AgentRefused, match="changed since"):
            press(people, people.admin, newest=seen)
        seen = agents.newest_key(people.agent)
    assert people.agent.keys.count() == 3


def test_votes_of_a_new_owner_fall_and_new_ones_are_refused(people: Cast) -> None:
    held = make.held(people.key)
    decisions.approve(people.approver, make.item_of(held).pk, why="go")
    agents.give(people.admin, "acme", people.agent.pk, owner="approver", why=WHY)
    assert held.approvals.get().void_cause == VoidCause.CONFLICT
    assert make.fresh(held).state == State.MANUAL_REVIEW
    with pytest.raises(NotPermitted, match="You own the agent"):
        decisions.approve(people.approver, make.item_of(held).pk, why="go")


def test_what_they_approved_before_it_was_given_to_them_was_right(people: Cast) -> None:
    used, voided = make.held(people.key), make.held(people.key)
    for held in (used, voided):
        decisions.approve(people.approver, make.item_of(held).pk, why="go")
    make.send(people.key, make.fresh(used))
    agents.give(people.admin, "acme", people.agent.pk, owner="approver", why=WHY)
    assert list(findings()) == []
    agents.give(people.admin, "acme", people.agent.pk, owner="second-approver", why=WHY)
    assert list(findings()) == []
    in_conflict = Vote.objects.filter(attempt=used)
    with pgtrigger.ignore():  # here they voted, and it was used, after it was given to them
        in_conflict.update(approver=people.second_approver, at=database_clock())
    assert any("their own agent" in found.detail for found in findings())


def test_votes_of_others_stand_when_the_owner_changes(people: Cast) -> None:
    held = make.held(people.key)
    decisions.approve(people.approver, make.item_of(held).pk, why="go")
    agents.give(people.admin, "acme", people.agent.pk, owner="second-approver", why=WHY)
    assert isinstance(make.ask_leave(people.key, make.fresh(held)), LeaveGiven)


@pytest.mark.parametrize(
    ("press", "field", "words"),
    [
        (lambda p: agents.create(p.admin, "acme", name=" x", owner="operator", why=WHY), "name", "name has"),
        (
            lambda p: agents.create(p.admin, "acme", name="billing-bot", owner="operator", why=WHY),
            "name",
            "already",
        ),
        (lambda p: agents.create(p.admin, "acme", name="x", owner="stranger", why=WHY), "owner", "Nobody"),
        (lambda p: agents.create(p.admin, "acme", name="x", owner="inactive", why=WHY), "owner", "Nobody"),
        (
            lambda p: agents.give(p.admin, "acme", p.agent.pk, owner="owner", why=WHY),
            "owner",
            "owns it already",
        ),
        (lambda p: make_key(p, p.admin, grant=Grant(["x"], ["ingest"], 1)), "scopes", "scope is"),
        (lambda p: make_key(p, p.admin, grant=Grant(["tool:*"], ["fly"], 1)), "verbs", "Verbs are"),
        (lambda p: make_key(p, p.admin, grant=Grant(["tool:*"], ["read"], 0)), "days", "valid for"),
    ],
)
def test_what_is_typed_wrong_is_said_where_it_was_typed(
    people: Cast, press: Callable[[Cast], object], field: str, words: str
) -> None:
    with pytest.raises(AgentRefused, match=words) as refused:
        press(people)
    assert refused.value.field == field
    assert not AccessChange.objects.exclude(by=None).exists()


def test_who_is_switched_off_gets_no_new_key(people: Cast) -> None:
    Agent.objects.filter(pk=people.agent.pk).update(is_active=False)
    for press in (make_key, rotate):
        with pytest.raises(AgentRefused, match="agent is switched off"):
            press(people, people.admin)
    Agent.objects.filter(pk=people.agent.pk).update(is_active=True)
    User.objects.filter(pk=people.owner.pk).update(is_active=False)
    with pytest.raises(AgentRefused, match="owner is switched off"):
        make_key(people, people.admin)


def test_a_key_that_is_over_is_not_rotated_and_is_revoked_once(people: Cast) -> None:
    agents.revoke_key(people.admin, "acme", people.agent.pk, people.key.key_id, why=WHY)
    with pytest.raises(AgentRefused, match="revoked already"):
        agents.revoke_key(people.admin, "acme", people.agent.pk, people.key.key_id, why=WHY)
    with pytest.raises(AgentRefused, match="is over"):
        rotate(people, people.admin)


def switch(people: Cast, *, on: bool) -> None:
    agents.switch(people.admin, "acme", people.agent.pk, on=on, why=WHY)


def test_an_agent_switched_off_gets_no_leave_and_what_it_sent_keeps_its_meaning(people: Cast) -> None:
    sent, waiting = make.recorded(people.key), make.recorded(people.key)
    assert isinstance(make.ask_leave(people.key, sent), LeaveGiven)
    held = make.held(people.key)
    decisions.approve(people.approver, make.item_of(held).pk, why="go")
    switch(people, on=False)
    for attempt in (waiting, make.fresh(held)):
        refused = make.ask_leave(people.key, attempt)
        assert isinstance(refused, LeaveRefused)
        assert refused.reasons == (Reason.AGENT_INACTIVE,)
        assert make.fresh(attempt).state == State.INTENT_RECORDED
    assert make.reported(people.key, sent, "succeeded", result_ref="re_1").state == State.OUTCOME_CONFIRMED

    switch(people, on=True)
    for attempt in (waiting, held):
        assert isinstance(make.ask_leave(people.key, make.fresh(attempt)), LeaveGiven)
    kinds = AccessChange.objects.exclude(by=None).order_by("pk").values_list("kind", flat=True)
    assert list(kinds) == [AccessChangeKind.AGENT_SWITCHED_OFF, AccessChangeKind.AGENT_SWITCHED_ON]


def test_an_agent_is_switched_once(people: Cast) -> None:
    with pytest.raises(AgentRefused, match="switched on already"):
        switch(people, on=True)
    switch(people, on=False)
    with pytest.raises(AgentRefused, match="switched off already"):
        switch(people, on=False)
    with pytest.raises(NotVisible):
        agents.switch(people.admin, "globex", people.agent.pk, on=True, why=WHY)
    assert AccessChange.objects.exclude(by=None).count() == 1
