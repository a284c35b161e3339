"""Policies on the desk: versions, their differences, and publishing exactly what was checked."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from ledger.models import PolicySnapshot
from review import decisions
from tests.dashboard.conftest import SignIn, body_of
from tests.review.test_policies import STRICTER, document
from tests.support import make
from tests.support.cast import Cast

PUBLISH = "/policies/acme/publish/"


def checked(client: Client, typed: str = STRICTER) -> dict[str, str]:
    """What the page of a check posts with the press."""
    answer = client.post(PUBLISH, {"document": typed, "check": "1"})
    assert answer.status_code == 200, answer.content.decode()
    hidden = re.findall(r'name="(base|checked)" value="([^"]+)"', answer.content.decode())
    return {"document": typed, "why": "two people", "publish": "1", **dict(hidden)}


def versions(people: Cast) -> int:
    return PolicySnapshot.objects.filter(tenant=people.tenant).count()


def test_those_in_charge_read_versions_and_differences(people: Cast, signed_in: SignIn) -> None:
    make.policy(people.tenant, by=people.admin, tools={make.MAIL: {"effect": "write", "summary": "<b>{to}"}})
    for reader in (people.admin, people.auditor):
        client = signed_in(reader)
        body = body_of(client, "/policies/")
        assert "Version 2" in body
        assert "in force" in body
        body = body_of(client, "/policies/acme/2/")
        assert "How it differs from version 1" in body
        assert "/tools/email.send/effect" in body
        assert "&lt;b&gt;{to}" in body
        assert "How it differs from version 2" in body_of(client, "/policies/acme/1/?against=2")
        assert "No field differs" in body_of(client, "/policies/acme/1/?against=1")
        assert "Nothing to compare with" in body_of(client, "/policies/acme/1/")
        assert client.get("/policies/acme/1/?against=x").status_code == 400
        for nowhere in ("/policies/acme/1/?against=7", "/policies/acme/7/", "/policies/?tenant=globex"):
            assert client.get(nowhere).status_code == 404


def test_nobody_else_reads_or_publishes(people: Cast, signed_in: SignIn) -> None:
    typed = checked(signed_in(people.admin))
    for reader in (people.viewer, people.operator, people.approver):
        client = signed_in(reader)
        for path in ("/policies/", "/policies/acme/1/", PUBLISH):
            assert client.get(path).status_code == 403, path
        assert client.post(PUBLISH, typed).status_code == 403
    assert signed_in(people.auditor).post(PUBLISH, typed).status_code == 403
    for blind in (people.stranger, people.superuser):
        client = signed_in(blind)
        for path in ("/policies/?tenant=acme", "/policies/acme/1/", PUBLISH):
            assert client.get(path).status_code == 404, path
        assert client.post(PUBLISH, typed).status_code == 404
    assert signed_in(people.inactive).post(PUBLISH, typed).status_code == 303
    assert Client().post(PUBLISH, typed)["Location"].startswith("/sign-in/")
    assert versions(people) == 1


def test_a_check_shows_what_becomes_stale_and_the_press_publishes_it(people: Cast, signed_in: SignIn) -> None:
    held = make.held(people.key)
    decisions.approve(people.approver, make.item_of(held).pk, why="go")
    client = signed_in(people.admin)
    assert "deploy.run" in body_of(client, PUBLISH)
    answer = client.post(PUBLISH, {"document": STRICTER, "check": "1"})
    body = " ".join(answer.content.decode().split())
    for shown in ("What publishing it changes", "1 approval, 0 open votes", "/tools/deploy.run/approvals"):
        assert shown in body
    assert versions(people) == 1
    answer = client.post(PUBLISH, checked(client))
    assert (answer.status_code, answer["Location"]) == (303, "/policies/acme/2/")
    assert "two people" in body_of(client, "/policies/acme/2/")
    assert "Policy published" in body_of(client, "/access/")


@pytest.mark.parametrize(
    ("changed", "status", "words"),
    [
        ({"document": document(deploy_run=None)}, 409, "changed the document after it was checked"),
        ({"checked": ""}, 409, "changed the document after it was checked"),
        ({"why": "  "}, 422, "Type a reason"),
        ({"document": "{"}, 422, "cannot be read"),
        ({"document": ""}, 422, "Type the document"),
        ({"base": "0"}, 409, "Another version was published"),
        ({"base": "x"}, 422, "Document"),
    ],
)
def test_only_what_was_checked_is_published(
    people: Cast, signed_in: SignIn, changed: dict[str, str], status: int, words: str
) -> None:
    client = signed_in(people.admin)
    answer = client.post(PUBLISH, {**checked(client), **changed})
    assert answer.status_code == status
    assert words in answer.content.decode()
    assert versions(people) == 1


def test_a_version_that_came_between_is_said(people: Cast, signed_in: SignIn) -> None:
    client = signed_in(people.admin)
    typed = checked(client)
    make.policy(people.tenant, by=people.admin, tools={make.MAIL: {"effect": "write"}})
    answer = client.post(PUBLISH, typed)
    assert answer.status_code == 409
    assert b"Another version was published" in answer.content
    assert b"two people" in answer.content
    assert versions(people) == 2


def test_what_is_in_force_already_cannot_be_pressed(people: Cast, signed_in: SignIn) -> None:
    client = signed_in(people.admin)
    answer = client.post(PUBLISH, {"document": document(), "check": "1"})
    assert b"in force already" in answer.content
    assert b'name="publish"' not in answer.content
