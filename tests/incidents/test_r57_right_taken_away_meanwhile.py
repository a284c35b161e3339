"""R57: a right is taken away between the request and its execution.

Kind: a right that was asked for once.

Our rules decide (d): each approver must still be permitted at the moment of leave (`approver-refused`), so an
approval does not outlive its approver's right. Refusals at leave are events; refusals after an absent bring
the attempt to the desk, counted there by reason (`ledger_open_items`).
"""

from collections.abc import Callable

import pytest

from ledger.models import Agent, ApiKey, Tenant, User
from ledger.queries.numbers import numbers
from ledger.rules.voiding import VoidCause
from ledger.transactions import database_clock
from review import access
from review.models import ApprovalScope
from review.roles import Role
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import MAIL, NONE, Body, Scene
from tests.support.api import slug_of

Happens = Callable[[Scene], object]


def owner_deactivated(scene: Scene) -> None:
    User.objects.filter(pk=scene.people.owner.pk).update(is_active=False)


def agent_switched_off(scene: Scene) -> None:
    Agent.objects.filter(pk=scene.people.agent.pk).update(is_active=False)


def scope_removed(scene: Scene) -> None:
    _keys(scene, scopes=["tool:note.*", "target:*"])


def key_revoked(scene: Scene) -> None:
    _keys(scene, revoked_at=database_clock())


def key_expired(scene: Scene) -> None:
    _keys(scene, expires_at=database_clock())


def tenant_suspended(scene: Scene) -> None:
    Tenant.objects.filter(pk=scene.people.tenant.pk).update(suspended_at=database_clock())


def _keys(scene: Scene, **changed: object) -> None:
    ApiKey.objects.filter(agent=scene.people.agent).update(**changed)


TAKEN_AWAY: dict[str, Happens] = {
    "owner-inactive": owner_deactivated,
    "agent-inactive": agent_switched_off,
    "scope-refused": scope_removed,
    "key-revoked": key_revoked,
    "key-expired": key_expired,
    "tenant-suspended": tenant_suspended,
}


@pytest.mark.parametrize("reason", TAKEN_AWAY)
def test_nothing_new_is_sent_and_the_truth_is_still_learned(scene: Scene, reason: str) -> None:
    """Four operations as far as they were: found absent, approved, not yet asked about, and done there."""
    retryable = scene.unknown("retryable", how="drop_before")
    approved = scene.unknown("approved", tool=MAIL, how="drop_before")
    scene.asks_until_settled(NONE)
    scene.approve(approved)
    lost = scene.unknown("lost", how="drop_before")
    happened = scene.unknown("happened")
    before = _refused_on_desk()
    TAKEN_AWAY[reason](scene)

    scene.asks_until_settled()
    assert (scene.state(happened), scene.effects("happened")) == ("OUTCOME_CONFIRMED", 1)
    assert (scene.state(lost), scene.attempt(lost).reason) == ("MANUAL_REVIEW", "authority_refused")
    assert scene.events(lost, "attempt.manual_review")[-1]["reasons"] == [reason]
    assert _refused_on_desk() == before + 1
    scene.time_passes(700)
    for about, state in ((retryable, "FAILED_RETRYABLE"), (approved, "MANUAL_REVIEW")):
        refused = scene.dispatch(about, worker="w2")
        assert (refused.status_code, slug_of(refused), scene.state(about)) == (403, reason, state)
        assert scene.events(about, "attempt.leave_refused")[-1]["reasons"][0] == reason
    assert scene.all_effects() == 1
    nothing_else_went_wrong(scene)


def test_an_approver_who_lost_the_right(scene: Scene) -> None:
    lost = approved_after_absent(scene)
    ApprovalScope.objects.filter(tenant=scene.people.tenant).delete()
    refused = scene.dispatch(lost, worker="w2")
    assert (refused.status_code, slug_of(refused)) == (403, "approver-refused")
    assert (scene.state(lost), scene.effects()) == ("MANUAL_REVIEW", 0)
    nothing_else_went_wrong(scene)


def test_an_approver_who_was_switched_off(scene: Scene) -> None:
    lost = approved_after_absent(scene)
    User.objects.filter(pk=scene.people.approver.pk).update(is_active=False)
    assert slug_of(scene.dispatch(lost, worker="w2")) == "approver-refused"
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize("role", [Role.APPROVER, Role.OPERATOR, Role.VIEWER])
def test_an_approver_whose_role_was_taken_at_the_desk(scene: Scene, role: Role) -> None:
    """The vote falls with the role, and giving it back brings no vote back."""
    lost = approved_after_absent(scene)
    people, tenant = scene.people, scene.people.tenant
    access.take_role_away(people.admin, tenant.slug, people.approver.pk, role=role, why="changed teams")
    access.give_role(people.admin, tenant.slug, people.approver.pk, role=Role.APPROVER, why="back")
    refused = scene.dispatch(lost, worker="w2")
    assert (refused.status_code, scene.state(lost), scene.effects()) == (403, "MANUAL_REVIEW", 0)
    assert scene.events(lost, "review.withdrawn")[-1]["person"] == people.approver.username
    assert scene.events(lost, "approval.voided")[-1]["cause"] == VoidCause.RIGHT
    nothing_else_went_wrong(scene)


def approved_after_absent(scene: Scene) -> Body:
    """A mail that never arrived, and a person's yes to a new one."""
    lost = scene.unknown(tool=MAIL, how="drop_before")
    scene.asks_until_settled(NONE)
    scene.approve(lost)
    return lost


def _refused_on_desk() -> float:
    found = next(number for number in numbers(database_clock()) if number.name == "ledger_open_items")
    return found.values.get("authority_refused", 0)
