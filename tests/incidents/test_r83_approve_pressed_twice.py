"""R83: two quick clicks, or two forms sent at once, run an approval twice, or an approval and its opposite.

Kind: one person's press counted twice.

The buttons are disabled while a request is open, but what counts is the server: where both presses arrive, a
later yes replaces the earlier one (`ledger/decisions/0002`), so one approval waits and leads to one send; and
a no that comes after a yes takes it back.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import expect

from ledger.lifecycle import LeaveGiven
from ledger.models import Approval, ApprovalUse, ReviewItem, User
from review.queries import item_page
from tests.browser.conftest import OpenDesk, chromium, open_desk  # noqa: F401
from tests.support import make
from tests.support.cast import Cast, cast
from tests.support.races import at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]

ROUNDS = 6
PATIENCE_MS = 60_000


@pytest.fixture
def people(transactional_db: None) -> Cast:
    return cast()


def pressing(user: User, item: ReviewItem, decision: str) -> partial[Any]:
    """One press of somebody who has the form open."""
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    ballot = item_page(user, item.pk).ballot
    typed = {"why": "go", "shown_digest": ballot.digest if ballot else ""}
    return partial(client.post, f"/review/{item.pk}/{decision}/", typed)


def test_the_same_form_sent_twice_at_once_is_one_approval_and_one_send(people: Cast) -> None:
    for _ in range(ROUNDS):
        held = make.held(people.key)
        item = make.item_of(held)
        answers = at_once(*[pressing(people.approver, item, "approve") for _ in range(2)])
        assert {answer.status_code for answer in answers} <= {303, 409}
        assert 303 in {answer.status_code for answer in answers}
        assert Approval.objects.filter(attempt=held, voided_at=None).count() == 1
        assert held.votes.filter(voided_at=None, approval__voided_at=None).count() == 1
        leaves = at_once(*[lambda held=held: make.ask_leave(people.key, make.fresh(held))] * 2)
        assert [isinstance(leave, LeaveGiven) for leave in leaves].count(True) == 1
        assert ApprovalUse.objects.filter(attempt=held).count() == 1


def test_yes_and_no_of_one_person_at_once_send_nothing(people: Cast) -> None:
    for _ in range(ROUNDS):
        held = make.held(people.key)
        item = make.item_of(held)
        answers = at_once(*[pressing(people.approver, item, decision) for decision in ("approve", "reject")])
        assert {answer.status_code for answer in answers} <= {303, 409}
        lost = [answer.content.decode() for answer in answers if answer.status_code == 409]
        assert all("approver" in body for body in lost), "the loser is told who decided"
        assert not Approval.objects.filter(attempt=held, voided_at=None).exists()
        assert not isinstance(make.ask_leave(people.key, make.fresh(held)), LeaveGiven)


def test_a_double_click_in_a_browser(people: Cast, open_desk: OpenDesk) -> None:  # noqa: F811
    held = make.held(people.key)
    desk = open_desk()
    desk.open(f"/review/{make.item_of(held).pk}/")
    desk.sign_in("approver")
    desk.page.get_by_role("link", name="Approve and dispatch").click()
    desk.page.get_by_label("Reason").fill("Planned for tonight")
    desk.page.get_by_role("button", name="Approve and dispatch").dblclick()
    recorded = desk.page.get_by_role("heading", name="Recorded: Approve and dispatch by approver")
    expect(recorded).to_be_visible(timeout=PATIENCE_MS)
    assert Approval.objects.filter(attempt=held, voided_at=None).count() == 1
    assert held.votes.filter(voided_at=None).count() == 1
