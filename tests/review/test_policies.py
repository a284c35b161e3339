"""Before a policy is published its administrator sees what becomes stale, and afterwards it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ledger.lifecycle import LeaveRefused
from ledger.models import AccessChange, PolicySnapshot, User
from ledger.rules.vocabulary import AccessChangeKind
from review import decisions, policies
from review.door import NotPermitted, NotVisible
from review.policies import PolicyRefused, ToolChange
from review.roles import Role, grant_role
from tests.support import make
from tests.support.cast import Cast

pytestmark = pytest.mark.django_db

WHY = "two people for every deployment"


def document(**changed: dict[str, Any] | None) -> str:
    """The cast's policy with some rules changed, or dropped."""
    tools = {name: dict(rule) for name, rule in make.TOOLS.items()}
    for name, rule in changed.items():
        tool = name.replace("_", ".")
        if rule is None:
            del tools[tool]
        else:
            tools[tool].update(rule)
    return json.dumps({"default": "refuse", "tools": tools})


def publish(people: Cast, by: User, typed: str, base: int = 1) -> int:
    return policies.publish(by, "acme", typed=typed, base=base, why=WHY)


STRICTER = document(deploy_run={"approvals": 2})


def test_a_dry_run_says_what_becomes_stale_and_writes_nothing(people: Cast) -> None:
    approved, held, sent = make.held(people.key), make.held(people.key), make.for_a_person(people.key)
    decisions.approve(people.approver, make.item_of(approved).pk, why="go")
    make.recorded(people.key, make.MAIL)
    run = policies.dry_run(people.admin, "acme", typed=STRICTER)
    assert (run.base, run.is_new) == (1, True)
    assert run.tools == (
        ToolChange(
            tool=make.DEPLOY,
            refused=False,
            wants_review=True,
            votes=0,
            approvals=1,
            held=1,
            unsent=1,
            sent=0,
        ),
    )
    assert PolicySnapshot.objects.filter(tenant=people.tenant).count() == 1
    (ticket,) = policies.dry_run(people.admin, "acme", typed=document(ticket_open=None)).tools
    assert (ticket.tool, ticket.refused, ticket.sent) == (sent.tool, True, 1)
    assert held.votes.count() == 0


def test_what_was_said_to_become_stale_is(people: Cast) -> None:
    approved = make.held(people.key)
    decisions.approve(people.approver, make.item_of(approved).pk, why="go")
    assert publish(people, people.admin, STRICTER) == 2
    answer = make.ask_leave(people.key, make.fresh(approved))
    assert isinstance(answer, LeaveRefused)
    assert [reason.value for reason in answer.reasons] == ["approval-stale"]


def test_wording_makes_nothing_stale(people: Cast) -> None:
    make.held(people.key)
    typed = document(deploy_run={"summary": "Roll out {version}", "review_sla_s": 60})
    assert policies.dry_run(people.admin, "acme", typed=typed).tools == ()


def test_open_votes_are_counted(people: Cast) -> None:
    held = make.variant_in_review(people.key)
    decisions.approve(people.approver, make.item_of(held).pk, why="go")
    (change,) = policies.dry_run(people.admin, "acme", typed=document(refund_create={"approvals": 3})).tools
    assert (change.votes, change.approvals) == (1, 0)


def test_open_work_is_counted_and_not_loaded(people: Cast) -> None:
    """However much there is, and however large its arguments."""
    counts = []
    for _ in range(2):
        for _ in range(2):
            approved, voted = make.held(people.key), make.variant_in_review(people.key)
            for attempt in (approved, voted):
                decisions.approve(people.approver, make.item_of(attempt).pk, why="go")
            make.held(people.key)
            make.for_a_person(people.key)
        typed = document(deploy_run={"approvals": 2}, refund_create={"approvals": 3}, ticket_open=None)
        with CaptureQueriesContext(connection) as queries:
            tools = {tool.tool: tool for tool in policies.dry_run(people.admin, "acme", typed=typed).tools}
        assert not [sql["sql"] for sql in queries if '"ledger_attempt"."args"' in sql["sql"]]
        counts.append(len(queries))
    assert counts[0] == counts[1]
    deploy, refund, ticket = tools[make.DEPLOY], tools[make.REFUND], tools[make.TICKET]
    assert (deploy.approvals, deploy.votes, deploy.held, deploy.unsent) == (4, 0, 4, 4)
    assert (refund.approvals, refund.votes) == (0, 4)
    assert (ticket.sent, ticket.held, ticket.unsent) == (4, 0, 0)


def test_whoever_publishes_does_not_approve_under_it(people: Cast) -> None:
    grant_role(people.approver, people.tenant, Role.ADMIN)
    held = make.held(people.key)
    publish(people, people.approver, STRICTER)
    with pytest.raises(NotPermitted, match="You published the rule"):
        decisions.approve(people.approver, make.item_of(held).pk, why="go")


def test_it_stays_on_record_with_its_reason(people: Cast) -> None:
    publish(people, people.admin, STRICTER)
    line = AccessChange.objects.get(kind=AccessChangeKind.POLICY_PUBLISHED)
    assert (line.by, line.why, line.data) == (people.admin, WHY, {"version": 2})


def test_nobody_else_checks_or_publishes(people: Cast) -> None:
    for other in (people.viewer, people.operator, people.approver, people.auditor):
        with pytest.raises(NotPermitted):
            publish(people, other, STRICTER)
        with pytest.raises(NotPermitted):
            policies.dry_run(other, "acme", typed=STRICTER)
    for blind in people.blind:
        with pytest.raises(NotVisible):
            publish(people, blind, STRICTER)
        with pytest.raises(NotVisible):
            policies.dry_run(blind, "acme", typed=STRICTER)
    assert PolicySnapshot.objects.filter(tenant=people.tenant).count() == 1


@pytest.mark.parametrize(
    ("typed", "base", "words"),
    [
        (STRICTER, 0, "Another version"),
        (document(), 1, "in force already"),
        ("{", 1, "cannot be read"),
        ('{"tools": {}, "tools": {}}', 1, "cannot be read"),
        ('{"tools": {"x": {}}}', 1, "/tools/x/effect"),
        ('{"tools": {"x": {"effect": "fly"}}}', 1, "must be one of"),
        ("[]", 1, "cannot be read"),
        ("\ud800", 1, "cannot be read"),
    ],
)
def test_what_cannot_be_published_is_refused_in_words(
    people: Cast, typed: str, base: int, words: str
) -> None:
    with pytest.raises(PolicyRefused, match=words):
        publish(people, people.admin, typed, base)
    assert PolicySnapshot.objects.filter(tenant=people.tenant).count() == 1
