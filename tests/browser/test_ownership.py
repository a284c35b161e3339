"""Rules set with a dry run, an item taken over and handed on, many at once: with scripts and without; and how
the pages look."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from ledger.models import ReviewGroup, ReviewItem
from review import ownership, teams
from review.models import OwnershipVersion
from review.ownership_rules import TypedRule
from tests.browser.conftest import Desk, OpenDesk
from tests.browser.test_flow import SCRIPTS, in_review
from tests.browser.test_look import WIDTHS, look_at
from tests.review.teams import in_force, team
from tests.support import make
from tests.support.cast import Cast

RULES = (
    ("refund.*", "", "payment", "#Payments"),
    ("email.*", "", "", "#Mail"),
    ("*", "approval_required", "", "#Deployments"),
)


def name_of(desk: Desk, scripts: bool, name: str) -> str:
    return f"{name}-{'scripts' if scripts else 'no-scripts'}"


def type_rule(page: Page, number: int, tool: str, reason: str, effect: str, owner: str) -> None:
    page.get_by_role("button", name="Add a rule").click()
    page.fill(f"#tool-{number}", tool)
    page.select_option(f"#reason-{number}", reason)
    page.select_option(f"#effect-{number}", effect)
    page.select_option(f"#owner-{number}", owner)


@SCRIPTS
def test_an_admin_sets_ownership_for_three_teams_with_a_dry_run(
    people: Cast, open_desk: OpenDesk, scripts: bool
) -> None:
    team(people, "Payments", people.operator)
    team(people, "Mail", people.second_operator)
    refund, mail, held = (
        make.item_of(attempt)
        for attempt in (
            make.unknown(people.key, make.REFUND),
            make.unknown(people.key),
            make.held(people.key),
        )
    )
    ownership.assign(people.admin, mail.pk, to="approver", why="You know their server")
    desk = open_desk(java_script_enabled=scripts)
    desk.open("/teams/")
    desk.sign_in("admin")
    page = desk.page
    page.select_option("#id_tenant", "acme")
    page.fill("#id_name", "Deployments")
    page.get_by_role("button", name="Create the team").click()
    page.select_option("#id_username", "approver")
    page.get_by_role("button", name="Add to the team").click()
    expect(page.get_by_role("region", name="What was done to it")).to_contain_text("approver added")

    page.get_by_role("link", name="Ownership").click()
    expect(page.locator("main")).to_contain_text("every question opens with the team Review desk")
    page.get_by_role("link", name="Change the rules").click()
    for number, rule in enumerate((RULES[1], RULES[0], RULES[2]), 1):
        type_rule(page, number, *rule)
    page.get_by_role("button", name="Move up rule 2").click()
    expect(page.locator("#tool-1")).to_have_value("refund.*")
    page.get_by_role("button", name="Show what would move").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("What these rules would move: Acme")
    expect(page.locator("main")).to_contain_text("3 of 3 open items would change owner")
    moves = page.get_by_role("table", name="From whom to whom")
    expect(moves.get_by_role("row")).to_contain_text(
        [
            "Owner now",
            "#Review desk #Deployments 1 1",
            "#Review desk #Payments 1 1",
            "approver #Mail 1 0",
        ]
    )
    page.locator("summary").click()
    desk.shot(name_of(desk, scripts, "ownership-dry-run"))
    assert not OwnershipVersion.objects.exists()

    page.get_by_label("New ones, and open ones that nobody in particular owns").check()
    page.get_by_label("Reason").fill("Three teams from today")
    page.get_by_role("button", name="Save and apply").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Saved as version 1. 2 of 2 open items moved")
    desk.shot(name_of(desk, scripts, "ownership-applied"))
    assert [owner(item) for item in (refund, mail, held)] == ["Payments", "approver", "Deployments"]
    assert owner(make.item_of(make.unknown(people.key))) == "Mail"
    page.get_by_role("link", name="Back to the rules in force").click()
    expect(page.get_by_role("region", name="What was saved")).to_contain_text("Three teams from today")
    desk.shot(name_of(desk, scripts, "ownership-rules"))
    assert desk.complaints == []


def owner(item: ReviewItem) -> str:
    item.refresh_from_db()
    return item.owner.get_username() if item.owner else item.owner_group.name


@SCRIPTS
def test_an_operator_takes_over_from_a_colleague_and_hands_it_on(
    people: Cast, open_desk: OpenDesk, scripts: bool
) -> None:
    item = in_review(people, "Printer on fire")
    ownership.claim(people.second_operator, item.pk)
    desk = open_desk(java_script_enabled=scripts)
    desk.open("/review/")
    desk.sign_in("operator")
    page = desk.page
    expect(page.locator("tbody")).to_contain_text("claimed by second-operator")
    page.get_by_role("link", name="Open a ticket: Printer on fire").click()
    expect(page.locator(".item-actions")).to_contain_text("second-operator holds this until")
    page.get_by_role("link", name="Take over").click()
    expect(page.locator("#ask")).to_contain_text("Ends the claim of second-operator, who is named.")
    desk.shot(name_of(desk, scripts, "take-over"))
    page.get_by_label("Reason").fill("Their shift is over")
    page.get_by_role("button", name="Take over").click()
    expect(page.get_by_role("heading", name="Recorded: Take over by operator")).to_be_visible()
    expect(page.locator(".question")).to_contain_text("claimed by me")
    expect(page.locator(".history").first).to_contain_text("second-operator")
    desk.shot(name_of(desk, scripts, "taken-over"))

    page.get_by_role("link", name="Hand over").click()
    page.get_by_label("Give it to").select_option("approver")
    page.get_by_label("Note for your colleague").fill("The provider calls back at nine")
    page.get_by_role("button", name="Hand over").click()
    expect(page.locator(".question")).to_contain_text("approver, Review desk; claimed by approver")
    item.refresh_from_db()
    assert item.owner == item.claimed_by == people.approver
    assert desk.complaints == []


@SCRIPTS
def test_ticked_items_are_snoozed_and_wake(people: Cast, open_desk: OpenDesk, scripts: bool) -> None:
    items = [in_review(people, title) for title in ("Printer on fire", "Lift stuck", "Door jammed")]
    ownership.claim(people.second_operator, items[2].pk)
    desk = open_desk(java_script_enabled=scripts)
    desk.open("/review/")
    desk.sign_in("operator")
    page = desk.page
    page.get_by_role("button", name="Snooze…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Snooze: nothing is ticked")
    desk.complaints.clear()  # the browser notes the status of a page that refuses on purpose
    page.get_by_role("link", name="Back to the queue").click()
    for title in ("Printer on fire", "Lift stuck", "Door jammed"):
        page.get_by_label(f"Tick Open a ticket: {title}").check()
    page.get_by_role("button", name="Snooze…").click()
    page.get_by_label("4 hours").check()
    page.get_by_label("Reason").fill("They open at nine")
    page.get_by_role("button", name="Snooze them").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Snooze: 2 of 3 done")
    expect(page.locator("#results")).to_contain_text("second-operator has claimed this item")
    desk.shot(name_of(desk, scripts, "many-snoozed"))
    page.get_by_role("link", name="Back to the queue").click()
    expect(page.get_by_role("link", name="Snoozed 2")).to_be_visible()
    page.get_by_role("link", name="Snoozed 2").click()
    page.get_by_role("link", name="Open a ticket: Lift stuck").click()
    page.get_by_role("button", name="Wake").click()
    expect(page.get_by_role("heading", name="Recorded: Wake by operator")).to_be_visible()
    assert desk.complaints == []


def test_a_row_is_ticked_by_its_key(people: Cast, open_desk: OpenDesk) -> None:
    in_review(people, "Printer on fire")
    desk = open_desk()
    desk.open("/review/")
    desk.sign_in("operator")
    desk.page.keyboard.press("j")
    desk.page.keyboard.press("x")
    expect(desk.page.get_by_label("Tick Open a ticket: Printer on fire")).to_be_checked()
    assert desk.complaints == []


def pages(people: Cast) -> Mapping[str, str]:
    """Name → address of what an administrator opens."""
    payments = team(people, "Payments of customers with very long names indeed", people.operator)
    empty = ReviewGroup.objects.get(pk=teams.create(people.admin, "acme", name="Empty"))
    free, away, waits = (make.item_of(make.unknown(people.key)) for _ in range(3))
    ownership.assign(people.admin, free.pk, to="second-operator", why="yours")
    in_force(
        people,
        TypedRule("refund.*", effect="payment", owner=f"#{payments.name}"),
        TypedRule("email." + "x" * 120, owner=f"#{empty.name}"),
        TypedRule("*", reason="unknown", owner="operator"),
    )
    ownership.snooze(people.operator, away.pk, until=timedelta(hours=4), why="They open at nine")
    ownership.wait_on(
        people.operator, waits.pk, what="the provider’s <support>", url="https://support.example/" + "t" * 200
    )
    people.second_operator.is_active = False
    people.second_operator.save(update_fields=["is_active"])
    return {
        "ownership": "/ownership/",
        "ownership-edit": "/ownership/acme/edit/",
        "teams": "/teams/",
        "team": f"/teams/{payments.pk}/",
        "team-empty": f"/teams/{empty.pk}/",
        "queue-owned": "/review/",
        "queue-unowned": "/review/?tab=unowned",
        "queue-snoozed": "/review/?tab=snoozed",
        "item-snoozed": f"/review/{away.pk}/",
        "item-waits": f"/review/{waits.pk}/",
        "snooze": f"/review/{waits.pk}/snooze/",
        "hand-over": f"/review/{waits.pk}/hand-over/",
        "wait-on": f"/review/{waits.pk}/wait-on/",
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_of_ownership_is_accessible_and_quiet(
    people: Cast, open_desk: OpenDesk, scheme: str, width: int
) -> None:
    desk = open_desk(viewport={"width": width, "height": 800}, color_scheme=scheme)
    desk.open("/ownership/")
    desk.sign_in("admin")
    page, addresses = desk.page, pages(people)
    faults = look_at(desk, "ownership-first", scheme, width)
    for name, path in addresses.items():
        desk.open(path)
        faults += look_at(desk, name, scheme, width)
    desk.open(addresses["ownership-edit"])
    page.get_by_role("button", name="Show what would move").last.click()
    faults += look_at(desk, "ownership-dry-run", scheme, width)
    page.get_by_role("button", name="Change them again").click()
    page.get_by_role("button", name="Add a rule").click()
    with page.expect_console_message(lambda said: "422" in said.text):
        page.get_by_role("button", name="Show what would move").last.click()
    desk.complaints.clear()  # the browser notes the status of a page that refuses on purpose
    faults += look_at(desk, "ownership-wrong", scheme, width)
    desk.open(addresses["ownership"])
    page.get_by_role("button", name="Apply to all").click()
    faults += look_at(desk, "ownership-applied", scheme, width)
    desk.open("/review/")
    for box in page.get_by_role("checkbox").all():
        box.check()
    page.get_by_role("button", name="Assign…").click()
    faults += look_at(desk, "many-assign", scheme, width)
    page.get_by_label("Give it to").select_option("operator")
    page.get_by_label("Reason").fill("All yours")
    page.get_by_role("button", name="Assign them").click()
    faults += look_at(desk, "many-assigned", scheme, width)
    assert faults == []
