"""R88: A slow poll's answer overwrites the newer one, and polls wipe what is being typed.

Kind: old news that arrives after the new. A poll fills a line of its own and nothing else, so whatever it
says and whenever it comes, no form, row or state is taken from under a person's hands; what it says is gone
with the page that asked.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Route, expect

from ledger.models import Decision
from ledger.rules.vocabulary import DecisionKind
from review import ownership
from tests.browser.conftest import Desk, OpenDesk, chromium, open_desk  # noqa: F401
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]

POLL = "document.querySelector('[data-poll]').dispatchEvent(new CustomEvent('ledger:poll'))"
CHANGED = "**/changed/**"


@pytest.fixture
def people(transactional_db: None) -> Cast:
    return cast()


@pytest.fixture
def desk(people: Cast, open_desk: OpenDesk) -> Desk:  # noqa: F811
    """A person who has the form of an item open, and has typed something."""
    item = make.item_of(make.for_a_person(people.key))
    window = open_desk()
    window.open(f"/review/{item.pk}/")
    window.sign_in("operator")
    window.page.get_by_role("link", name="Confirm it did not happen").click()
    window.page.get_by_label("Reason").fill("Half a rea")
    ownership.note(people.second_operator, item.pk, why="their support calls back")
    return window


def test_a_poll_touches_nothing_that_is_typed_ticked_or_in_focus(desk: Desk) -> None:
    reason = desk.page.get_by_label("Reason")
    reason.focus()
    for _ in range(3):
        desk.page.evaluate(POLL)
        expect(desk.page.locator("[data-poll]")).to_contain_text("show")
    expect(reason).to_be_focused()
    expect(reason).to_have_value("Half a rea")
    desk.page.keyboard.type("son")
    expect(reason).to_have_value("Half a reason")


def test_a_poll_that_is_answered_after_the_decision_changes_nothing(desk: Desk) -> None:
    held: list[Route] = []

    def hold(poll: Route) -> None:
        held.append(poll)

    desk.page.route(CHANGED, hold)
    with desk.page.expect_request(CHANGED):
        desk.page.evaluate(POLL)
    desk.page.get_by_role("button", name="Confirm it did not happen").click()
    answer = desk.page.get_by_role("heading", name="Recorded: Confirm it did not happen by operator")
    expect(answer).to_be_visible()
    for late in held:
        late.fulfill(status=200, body="1 new event: <a href='#'>show</a>")
    desk.page.unroute(CHANGED)
    expect(answer).to_be_visible()
    expect(desk.page.locator(".question")).to_contain_text("Failed")
    expect(desk.page.locator("[data-poll]")).not_to_contain_text("1 new event")
    assert Decision.objects.filter(kind=DecisionKind.CONFIRM_DID_NOT).count() == 1
