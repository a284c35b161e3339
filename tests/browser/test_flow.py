"""From sign-in to a recorded decision, with scripts and without."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from ledger.models import Decision, ReviewItem, Vote
from ledger.rules.states import State
from ledger.rules.vocabulary import DecisionKind
from review import decisions
from tests.browser.conftest import OpenDesk
from tests.support import make
from tests.support.cast import Cast

SCRIPTS = pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])


def in_review(people: Cast, title: str) -> ReviewItem:
    return make.item_of(make.for_a_person(people.key, args={"title": title}))


@SCRIPTS
def test_sign_in_find_confirm_and_go_on(people: Cast, open_desk: OpenDesk, scripts: bool) -> None:
    item, _next = in_review(people, "Printer on fire"), in_review(people, "Lift stuck")
    desk = open_desk(java_script_enabled=scripts)
    desk.open(f"/review/{item.pk}/")
    desk.sign_in("operator")
    expect(desk.page.get_by_role("heading", level=1)).to_contain_text("The tool has no look-up")
    desk.page.get_by_role("link", name="Back to the queue").click()
    desk.page.get_by_role("link", name="Open a ticket: Printer on fire").click()
    desk.page.get_by_role("link", name="Confirm it happened").click()
    desk.page.get_by_label("Provider’s reference").fill("tkt_000042")
    desk.page.get_by_label("Reason").fill("Seen in their console")
    desk.page.get_by_role("button", name="Confirm it happened").click()
    answer = desk.page.get_by_role("region", name="Recorded: Confirm it happened by operator")
    expect(answer).to_contain_text("Confirmed")
    expect(answer).to_contain_text("event")
    assert make.fresh(item.attempt).state == State.OUTCOME_CONFIRMED
    desk.page.get_by_role("link", name="Next item").click()
    expect(desk.page.locator(".question")).to_contain_text("Lift stuck")
    assert desk.complaints == []


@SCRIPTS
def test_approve_what_is_shown(people: Cast, open_desk: OpenDesk, scripts: bool) -> None:
    item = make.item_of(make.held(people.key))
    desk = open_desk(java_script_enabled=scripts)
    desk.open(f"/review/{item.pk}/")
    desk.sign_in("approver")
    desk.page.get_by_role("link", name="Approve and dispatch").click()
    bound = desk.page.locator(".bound")
    expect(bound).to_contain_text("Deploy 2026.11")
    expect(bound).to_contain_text("its first")
    desk.page.get_by_label("Reason").fill("Planned for tonight")
    desk.page.get_by_role("button", name="Approve and dispatch").click()
    expect(
        desk.page.get_by_role("heading", name="Recorded: Approve and dispatch by approver")
    ).to_be_visible()
    assert Vote.objects.get().decision.why == "Planned for tonight"
    assert make.fresh(item.attempt).state == State.INTENT_RECORDED
    assert desk.complaints == []


@SCRIPTS
def test_reject_says_what_became_of_it(people: Cast, open_desk: OpenDesk, scripts: bool) -> None:
    item = in_review(people, "Printer on fire")
    desk = open_desk(java_script_enabled=scripts)
    desk.open(f"/review/{item.pk}/reject/")
    desk.sign_in("operator")
    desk.page.get_by_label("It did not happen").check()
    desk.page.get_by_label("Reason").fill("They never got it")
    desk.page.get_by_role("button", name="Reject").click()
    expect(desk.page.get_by_role("heading", name="Recorded: Reject by operator")).to_be_visible()
    assert make.fresh(item.attempt).state == State.FAILED
    assert desk.complaints == []


@SCRIPTS
def test_correct_arguments_in_two_steps(people: Cast, open_desk: OpenDesk, scripts: bool) -> None:
    item = make.item_of(make.held(people.key))
    desk = open_desk(java_script_enabled=scripts)
    desk.open(f"/review/{item.pk}/")
    desk.sign_in("operator")
    desk.page.get_by_role("link", name="Relink to corrected arguments").click()
    desk.page.get_by_role("textbox", name="Corrected arguments").fill('{"version": "2026.12"}')
    desk.page.get_by_label("Reason").fill("Last month's")
    desk.page.get_by_role("button", name="Show what changes").click()
    expect(desk.page.get_by_text("What changes: 1 field")).to_be_visible()
    assert not Decision.objects.exists()
    desk.page.get_by_role("button", name="Relink to corrected arguments").click()
    expect(
        desk.page.get_by_role("heading", name="Recorded: Relink to corrected arguments by operator")
    ).to_be_visible()
    assert Decision.objects.get().kind == DecisionKind.RELINK_ARGUMENTS
    assert desk.complaints == []


@SCRIPTS
def test_the_loser_of_a_race_keeps_what_they_typed(people: Cast, open_desk: OpenDesk, scripts: bool) -> None:
    item = in_review(people, "Printer on fire")
    desk = open_desk(java_script_enabled=scripts)
    desk.open(f"/review/{item.pk}/confirm-happened/")
    desk.sign_in("operator")
    desk.page.get_by_label("Provider’s reference").fill("tkt_000042")
    desk.page.get_by_label("Reason").fill("Seen in their console")
    decisions.confirm_did_not_happen(people.second_operator, item.pk, why="Their log is empty")
    desk.page.get_by_role("button", name="Confirm it happened").click()
    refused = desk.page.get_by_role("alert").filter(has_text="second-operator")
    expect(refused).to_contain_text("Their log is empty")
    expect(desk.page.get_by_label("Reason")).to_have_value("Seen in their console")
    assert Decision.objects.count() == 1


def test_ten_keystrokes_decide_without_a_pointer(people: Cast, open_desk: OpenDesk) -> None:
    items = [in_review(people, "Printer on fire"), in_review(people, "Lift stuck")]
    desk = open_desk()
    desk.open("/review/")
    desk.sign_in("operator")
    keys = desk.page.keyboard
    keys.press("j")
    keys.press("Enter")
    desk.page.wait_for_selector(".question")
    keys.press("n")
    desk.page.wait_for_selector("#ask")
    expect(desk.page.get_by_label("Reason")).to_be_focused()
    keys.type("nothing there")
    keys.press("Control+Enter")
    expect(
        desk.page.get_by_role("heading", name="Recorded: Confirm it did not happen by operator")
    ).to_be_visible()
    keys.press("Enter")
    expect(desk.page.locator(".question")).to_contain_text("Lift stuck")
    assert [make.fresh(item.attempt).state for item in items] == [State.FAILED, State.MANUAL_REVIEW]
    assert desk.complaints == []


def test_a_viewer_can_reach_every_button_and_press_none(people: Cast, open_desk: OpenDesk) -> None:
    item = in_review(people, "Printer on fire")
    desk = open_desk()
    desk.open(f"/review/{item.pk}/")
    desk.sign_in("viewer")
    button = desk.page.get_by_role("button", name="Reject")
    expect(button).to_have_attribute("aria-disabled", "true")
    button.focus()
    expect(button).to_be_focused()
    desk.page.keyboard.press("Enter")
    desk.page.keyboard.press("d")
    expect(desk.page.locator("#announcer")).to_contain_text("You need the right to decide work in Acme")
    assert not Decision.objects.exists()
    assert desk.complaints == []


def test_polling_offers_changes_and_leaves_the_hands_alone(people: Cast, open_desk: OpenDesk) -> None:
    in_review(people, "Printer on fire")
    desk = open_desk()
    desk.open("/review/")
    desk.sign_in("operator")
    search = desk.page.get_by_label("Sentence or key")
    search.fill("half a wo")
    in_review(people, "Lift stuck")
    desk.page.evaluate("document.querySelector('[data-poll]').dispatchEvent(new CustomEvent('ledger:poll'))")
    expect(desk.page.get_by_text("1 new, 0 changed")).to_be_visible()
    expect(search).to_be_focused()
    expect(search).to_have_value("half a wo")
    expect(desk.page.locator("[data-row]")).to_have_count(1)
    desk.page.get_by_role("link", name="show", exact=True).click()
    expect(desk.page.locator("[data-row]")).to_have_count(2)
    assert desk.complaints == []


def test_an_expired_session_returns_with_what_was_typed(people: Cast, open_desk: OpenDesk) -> None:
    item = in_review(people, "Printer on fire")
    desk = open_desk()
    desk.open(f"/review/{item.pk}/")
    desk.sign_in("operator")
    desk.page.get_by_role("link", name="Confirm it did not happen").click()
    desk.page.get_by_label("Reason").fill("A long story")
    desk.page.context.clear_cookies(name="sessionid")
    desk.page.get_by_role("button", name="Confirm it did not happen").click()
    desk.page.wait_for_url("**/sign-in/**")
    desk.sign_in("operator")
    expect(desk.page.get_by_label("Reason")).to_have_value("A long story")
    assert not Decision.objects.exists()
    assert desk.complaints == []
