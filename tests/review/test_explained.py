"""Why a send would be refused: the same list, in the same order and words, on the button, in the API's answer
and in the event."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pgtrigger
import pytest
from django.test import Client

from dashboard.templatetags.desk import in_words
from ledger.access import Grant
from ledger.lifecycle import open_run
from ledger.models import Agent, ApiKey, Approval, Attempt, Event, Operation, Tenant, User
from ledger.rules import authority
from ledger.rules.authority import AUTHORITY_WORDS, Reason, Refused
from ledger.rules.looked_up import LookedUpKind
from ledger.rules.vocabulary import DecisionKind, EventKind
from ledger.transactions import database_clock, durable
from review import decisions
from review.queries import ItemPage, item_page
from tests.review.pages import action
from tests.support import make
from tests.support.cast import Cast

SEND = "limited.send"
TOOLS: Mapping[str, Mapping[str, Any]] = {
    **make.TOOLS,
    make.DEPLOY: {**make.TOOLS[make.DEPLOY], "target": "/version"},
    SEND: {"effect": "write", "idempotent": True, "key_ttl_s": 3_600, "provider": "bank"},
}


@dataclass(frozen=True)
class Scene:
    people: Cast
    key: ApiKey
    secret: str

    def publish(self, **changed: Mapping[str, Any]) -> None:
        tools = {**TOOLS, **{name.replace("_", "."): rule for name, rule in changed.items()}}
        make.policy(self.people.tenant, by=self.people.admin, tools=tools)

    def approved(self, **intent: Any) -> Attempt:
        """A first send that a person has approved."""
        attempt = make.held(self.key, **intent)
        decisions.approve(self.people.approver, make.item_of(attempt).pk, why="go")
        return make.fresh(attempt)

    def absent(self) -> Attempt:
        """Sent, and proven by look-ups to have had no effect: it may be sent again without a person."""
        attempt = make.unknown(self.key, SEND, args={"n": 1})
        past = database_clock() - timedelta(minutes=2)
        Attempt.objects.filter(pk=attempt.pk).update(lease_ended_at=past)
        make.looked_up(attempt, LookedUpKind.ABSENT)
        Attempt.objects.filter(pk=attempt.pk).update(last_negative_at=past)
        make.looked_up(attempt, LookedUpKind.ABSENT)
        Attempt.objects.filter(pk=attempt.pk).update(send_again_at=None)
        return make.fresh(attempt)

    def asks(self, attempt: Attempt) -> dict[str, Any]:
        """What the API answers to a request for leave."""
        body = {"worker_id": "w", "leave_id": "l", "args_hash": attempt.args_hash}
        answer = Client().post(
            f"/api/v1/attempts/{attempt.pk}/dispatch",
            json.dumps(body),
            content_type="application/json",
            headers={"Authorization": f"Bearer {self.secret}"},
        )
        assert answer.status_code == 403, answer.content
        said: dict[str, Any] = answer.json()
        return said


@pytest.fixture
def scene(people: Cast) -> Scene:
    ApiKey.objects.update(revoked_at=database_clock())  # of the agent's keys the best one speaks: have one
    grant = Grant(scopes=["tool:*", "target:*"], verbs=["ingest", "read"], days=90)
    secret, key = make.key_of(people.agent, grant)
    made = Scene(people, key, secret)
    made.publish()
    return made


Change = Callable[[Scene], Attempt]


def approved_and_then(change: Callable[[Scene, Attempt], object], **intent: Any) -> Change:
    def made(scene: Scene) -> Attempt:
        attempt = scene.approved(**intent)
        with pgtrigger.ignore():  # what never changes does not: here time passes, or a fact was another one
            change(scene, attempt)
        return make.fresh(attempt)

    return made


def _keys(**columns: Any) -> Callable[[Scene, Attempt], object]:
    return lambda scene, _: ApiKey.objects.filter(pk=scene.key.pk).update(**columns)


def _without_budget(scene: Scene) -> Attempt:
    durable(lambda: open_run(key=scene.key, name="run-7", limits={"tool_calls": 1}))
    attempt = scene.approved(run="run-7")
    make.dispatched(scene.key, run="run-7")
    return attempt


def _changed_rule(scene: Scene) -> Attempt:
    attempt = scene.absent()
    scene.publish(limited_send={**TOOLS[SEND], "key_ttl_s": 7_200})
    return attempt


def _window_over(scene: Scene) -> Attempt:
    return make.first_sent(scene.absent(), timedelta(hours=1))


def _attempts_used_up(scene: Scene) -> Attempt:
    """`max_attempts` is no part of what a rule's hash covers: it may be lowered beneath what was sent."""
    attempt = scene.absent()
    scene.publish(limited_send={**TOOLS[SEND], "max_attempts": 1})
    return attempt


SITUATIONS: Mapping[Reason, Change] = {
    Reason.TENANT_SUSPENDED: approved_and_then(
        lambda *_: Tenant.objects.update(suspended_at=database_clock())
    ),
    Reason.AGENT_INACTIVE: approved_and_then(lambda *_: Agent.objects.update(is_active=False)),
    Reason.OWNER_INACTIVE: approved_and_then(
        lambda scene, _: User.objects.filter(pk=scene.people.owner.pk).update(is_active=False)
    ),
    Reason.KEY_REVOKED: approved_and_then(
        lambda scene, _: ApiKey.objects.filter(pk=scene.key.pk).update(revoked_at=database_clock())
    ),
    Reason.KEY_EXPIRED: approved_and_then(
        lambda scene, _: ApiKey.objects.filter(pk=scene.key.pk).update(expires_at=database_clock())
    ),
    Reason.SCOPE_REFUSED: approved_and_then(_keys(scopes=["tool:email.*", "target:*"])),
    Reason.TARGET_REFUSED: approved_and_then(_keys(scopes=["tool:*", "target:1.*"])),
    Reason.OPERATION_CANCELLED: approved_and_then(
        lambda *_: Operation.objects.update(cancelled_at=database_clock())
    ),
    Reason.EXPIRED: approved_and_then(
        lambda _, attempt: Attempt.objects.filter(pk=attempt.pk).update(expires_at=database_clock())
    ),
    Reason.POLICY_REFUSED: approved_and_then(
        lambda scene, _: make.policy(scene.people.tenant, by=scene.people.admin, tools={})
    ),
    Reason.POLICY_CHANGED: _changed_rule,
    Reason.KEY_WINDOW_OVER: _window_over,
    Reason.ATTEMPTS_USED_UP: _attempts_used_up,
    Reason.BUDGET_EXHAUSTED: _without_budget,
    Reason.APPROVAL_EXPIRED: approved_and_then(
        lambda *_: Approval.objects.update(expires_at=database_clock())
    ),
    Reason.APPROVAL_STALE: approved_and_then(
        lambda scene, _: scene.publish(deploy_run={**TOOLS[make.DEPLOY], "approvals": 2})
    ),
    Reason.APPROVER_REFUSED: approved_and_then(
        lambda scene, _: User.objects.filter(pk=scene.people.approver.pk).update(is_active=False)
    ),
}
"""For each reason a world in which leave is refused for it. `approval-used` has none: leave reads unused
approvals only, so a used one answers like one for something else."""


def on_the_button(page: ItemPage) -> list[str]:
    """Authority's reasons on the button to approve, those that disable it and those that it answers."""
    approve = action(page, DecisionKind.APPROVE)
    codes = [reason.value for reason in Reason]
    disabling = [why for why in approve.why_disabled if why in codes]
    assert disabling == sorted(disabling, key=codes.index)
    assert list(approve.answers) == sorted(approve.answers, key=codes.index)
    return sorted({*disabling, *approve.answers}, key=codes.index)


def in_the_event(attempt: Attempt) -> dict[str, Any]:
    event: Event = attempt.events.filter(kind=EventKind.LEAVE_REFUSED).latest("sequence")
    return event.data


def as_seen(user: User, item_id: str) -> str:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return html.unescape(client.get(f"/review/{item_id}/").content.decode())


@pytest.mark.parametrize("reason", SITUATIONS)
def test_button_answer_and_event_say_the_same(scene: Scene, reason: Reason) -> None:
    attempt = SITUATIONS[reason](scene)
    said = scene.asks(attempt)
    item = make.item_of(attempt)
    page = item_page(scene.people.second_approver, item.pk)
    assert said["reasons"] == on_the_button(page) == in_the_event(attempt)["reasons"]
    assert reason in said["reasons"]
    words = [AUTHORITY_WORDS[Reason(code)] for code in said["reasons"]]
    assert said["words"] == in_the_event(attempt)["words"] == words
    assert said["type"] == f"/problems/{said['reasons'][0]}"
    assert f"{said['title']}." == words[0]
    assert said["safe_to_dispatch"] is False
    seen = as_seen(scene.people.second_approver, item.pk)
    approve = action(page, DecisionKind.APPROVE)
    if approve.answers:
        assert in_words(approve.answers) in seen
    if approve.why_disabled:
        assert in_words(approve.why_disabled) in seen


def test_every_reason_is_compared() -> None:
    assert {*SITUATIONS, Reason.APPROVAL_USED} == set(Reason)
    assert list(AUTHORITY_WORDS) == list(Reason)


def test_many_reasons_at_once_keep_their_order(scene: Scene) -> None:
    attempt = _without_budget(scene)
    Tenant.objects.filter(pk=scene.people.tenant.pk).update(suspended_at=database_clock())
    Agent.objects.update(is_active=False)
    _keys(scopes=["tool:email.*"])(scene, attempt)
    Operation.objects.filter(pk=attempt.operation_id).update(cancelled_at=database_clock())
    User.objects.filter(pk=scene.people.approver.pk).update(is_active=False)
    said = scene.asks(attempt)
    assert said["reasons"] == [
        "tenant-suspended",
        "agent-inactive",
        "scope-refused",
        "target-refused",
        "operation-cancelled",
        "budget-exhausted",
        "approver-refused",
    ]
    page = item_page(scene.people.second_approver, make.item_of(attempt).pk)
    assert on_the_button(page) == said["reasons"] == in_the_event(attempt)["reasons"]
    assert said["because"] == in_the_event(attempt)["because"]
    assert set(said["because"]) <= set(action(page, DecisionKind.APPROVE).why_disabled)


@pytest.mark.parametrize("reason", Reason)
def test_whatever_authority_answers_is_what_all_three_say(
    scene: Scene, reason: Reason, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one function is replaced: what is left is how its answer is told."""
    attempt = scene.approved()
    for home in ("ledger.authority", "review.queries.then_now"):
        monkeypatch.setattr(f"{home}.check_authority", lambda *_: Refused((reason,)))
    said = scene.asks(attempt)
    page = item_page(scene.people.second_approver, make.item_of(attempt).pk)
    assert said["reasons"] == in_the_event(attempt)["reasons"] == on_the_button(page) == [reason]
    assert authority.as_told([reason]) == {"reasons": said["reasons"], "words": said["words"]}
