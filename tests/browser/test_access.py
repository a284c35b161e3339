"""The pages of access in light and dark, wide and narrow; and a right taken away with and without scripts."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from playwright.sync_api import expect

from ledger.models import Provider
from ledger.transactions import database_clock
from review import access, decisions, ownership
from review.rights import rights_of
from review.roles import Role
from tests.browser.conftest import OpenDesk
from tests.browser.test_flow import SCRIPTS
from tests.browser.test_look import REFUSED_PAGES, WIDTHS, look_at
from tests.support import make
from tests.support.cast import Cast
from tests.support.provider import asking


def pages(people: Cast) -> Mapping[str, str]:
    """Name → address of every page of access, with work in hands, votes, refusals and a record."""
    claimed, voted = make.for_a_person(people.key), make.variant_in_review(people.key)
    ownership.claim(people.approver, make.item_of(claimed).pk)
    decisions.approve(people.approver, make.item_of(voted).pk, why="go")
    make.posted(people.key, make.intent_of("unknown.tool", args={"x": 1}))
    access.take_role_away(
        people.admin, "acme", people.second_operator.pk, role=Role.VIEWER, why="left \u202e <b>us</b>"
    )
    tools = {**make.TOOLS, make.DEPLOY: {**make.TOOLS[make.DEPLOY], "approvals": 2}}
    make.policy(people.tenant, by=people.admin, tools=tools)
    asked = asking("http://127.0.0.1:1/refunds", ["amount"])
    Provider.objects.create(
        tenant=people.tenant, name="bank", adapter="http", config=asked, unavailable_since=database_clock()
    )
    person, agent = f"/access/acme/{people.approver.pk}/", f"/agents/acme/{people.agent.pk}/"
    return {
        "access": "/access/",
        "access-me": "/access/me/",
        "access-add": "/access/acme/add/",
        "access-away": "/absence/acme/away/",
        "access-admit": "/access/acme/admit/",
        "set-password": "/set-password/",
        "person": person,
        "person-off": f"/access/acme/{people.inactive.pk}/",
        "person-nothing-left": f"/access/acme/{people.second_operator.pk}/",
        "person-oneself": f"/access/acme/{people.admin.pk}/give-role/",
        **{
            f"person-{kind}": f"{person}{kind}/"
            for kind in ("give-role", "give-scope", "take-scope", "new-link", "away")
        },
        "person-switch-off": f"{person}switch-off/",
        "policies": "/policies/",
        "policy": "/policies/acme/2/",
        "policy-edit": "/policies/acme/publish/",
        "providers": "/providers/",
        "agents": "/agents/",
        "agent-add": "/agents/acme/add/",
        "agent": agent,
        "agent-new-key": f"{agent}new-key/",
        "agent-give": f"{agent}give/",
        "agent-switch-off": f"{agent}switch-off/",
        "agent-rotate": f"{agent}keys/{people.key.key_id}/rotate/",
        "agent-revoke": f"{agent}keys/{people.key.key_id}/revoke/",
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_of_access_is_accessible_and_quiet(
    people: Cast, open_desk: OpenDesk, scheme: str, width: int
) -> None:
    desk = open_desk(viewport={"width": width, "height": 800}, color_scheme=scheme)
    desk.open("/access/")
    desk.sign_in("admin")
    faults: list[str] = []
    for name, path in pages(people).items():
        desk.open(path)
        faults += look_at(desk, name, scheme, width)
    assert faults == []


def test_who_is_not_in_charge_is_told_so_accessibly(people: Cast, open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.open("/access/")
    desk.sign_in("viewer")
    faults = look_at(desk, REFUSED_PAGES[0], "light", 1280)
    expect(desk.page.get_by_role("main")).to_contain_text("administer or to audit in Acme")
    assert faults == []


@SCRIPTS
def test_a_right_is_taken_and_the_person_sees_it_at_once(
    people: Cast, open_desk: OpenDesk, scripts: bool
) -> None:
    item = make.item_of(make.for_a_person(people.key))
    ownership.claim(people.operator, item.pk)
    operator, admin = open_desk(java_script_enabled=scripts), open_desk(java_script_enabled=scripts)
    operator.open("/access/me/")
    operator.sign_in("operator")
    expect(operator.page.get_by_role("main")).to_contain_text("You are viewer and operator here")

    admin.open("/access/")
    admin.sign_in("admin")
    admin.page.get_by_role("link", name="operator", exact=True).click()
    expect(admin.page.get_by_role("main")).to_contain_text("Open a ticket")
    admin.page.get_by_role("link", name="Take a role").click()
    admin.page.get_by_label("operator: Claims").check()
    admin.page.get_by_label("Reason").fill("Changed teams")
    admin.page.get_by_role("button", name="Take a role").click()
    expect(admin.page.locator("section", has=admin.page.locator("#changes"))).to_contain_text("Changed teams")
    admin.shot(f"right-taken-{'scripts' if scripts else 'no-scripts'}")

    operator.open("/access/me/")
    expect(operator.page.get_by_role("main")).to_contain_text("You need the right to decide work in Acme.")
    expect(operator.page.get_by_role("main")).to_contain_text("admin")
    assert not rights_of(people.operator, people.tenant).decide
    item.refresh_from_db()
    assert item.claimed_by is None
    assert admin.complaints == operator.complaints == []


@SCRIPTS
def test_a_person_is_added_sets_a_password_and_sees_what_the_role_allows(
    people: Cast, open_desk: OpenDesk, scripts: bool
) -> None:
    item = make.item_of(make.for_a_person(people.key))
    admin, nora = open_desk(java_script_enabled=scripts), open_desk(java_script_enabled=scripts)
    admin.open("/access/")
    admin.sign_in("admin")
    admin.page.get_by_role("link", name="Add a person").click()
    admin.page.get_by_label("User name").fill("nora")
    admin.page.get_by_label("Name", exact=True).fill("Nora Nil")
    admin.page.get_by_label("viewer: Sees").check()
    admin.page.get_by_label("Reason").fill("Joins the desk")
    admin.page.get_by_role("button", name="Add the person").click()
    link = admin.page.locator("#secret code").inner_text()
    admin.shot(f"person-added-{'scripts' if scripts else 'no-scripts'}")

    nora.page.goto(link)
    if scripts:
        assert "#" not in nora.page.url
        assert nora.axe() == []
    else:
        nora.page.get_by_label("Code of the link").fill(link.partition("#")[2])
    nora.page.get_by_label("New password").fill("nora-secret")
    nora.page.get_by_label("The same password again").fill("nora-secret")
    nora.page.get_by_role("button", name="Set the password").click()
    expect(nora.page.get_by_role("main")).to_contain_text("Your password is set")
    nora.sign_in("nora")
    nora.open("/access/me/")
    expect(nora.page.get_by_role("main")).to_contain_text("You are viewer here")
    nora.open(f"/review/{item.pk}/")
    expect(nora.page.get_by_role("main")).to_contain_text("You need the right to decide work in Acme")
    assert nora.page.get_by_role("link", name="Access").count() == 0

    admin.open("/access/")
    expect(admin.page.get_by_role("main")).to_contain_text("Password set")
    assert admin.complaints == nora.complaints == []


@SCRIPTS
def test_a_key_is_made_and_shown_once(people: Cast, open_desk: OpenDesk, scripts: bool) -> None:
    desk = open_desk(java_script_enabled=scripts)
    desk.open("/agents/")
    desk.sign_in("admin")
    desk.page.get_by_role("link", name="billing-bot").click()
    desk.page.get_by_role("link", name="Make a key").click()
    desk.page.get_by_label("Scopes").fill("tool:note.*")
    desk.page.get_by_label("Reason").fill("A second worker")
    desk.page.get_by_role("button", name="Make a key").click()
    expect(desk.page.locator("#secret")).to_contain_text("ilk_")
    assert not scripts or desk.axe() == []  # without scripts in the page axe never ends
    desk.open(f"/agents/acme/{people.agent.pk}/")
    expect(desk.page.get_by_role("main")).not_to_contain_text("ilk_")
    expect(desk.page.get_by_role("main")).to_contain_text("tool:note.*")
    assert desk.complaints == []


@SCRIPTS
def test_a_policy_is_checked_and_then_published(people: Cast, open_desk: OpenDesk, scripts: bool) -> None:
    held = make.held(people.key)
    decisions.approve(people.approver, make.item_of(held).pk, why="go")
    desk = open_desk(java_script_enabled=scripts, viewport={"width": 1280, "height": 900})
    desk.open("/policies/")
    desk.sign_in("admin")
    desk.page.get_by_role("link", name="Edit and publish").click()
    document = desk.page.get_by_label("Document", exact=True)
    document.fill(document.input_value().replace('"approvals": 1', '"approvals": 2'))
    desk.page.get_by_role("button", name="Check what it changes").click()
    dry_run = desk.page.locator("#dry-run")
    expect(dry_run).to_contain_text("1 approval, 0 open votes")
    expect(dry_run).to_contain_text("/tools/deploy.run/approvals")
    assert not scripts or desk.axe() == []  # without scripts in the page axe never ends
    desk.shot(f"policy-checked-{'scripts' if scripts else 'no-scripts'}")
    desk.page.get_by_label("Reason").fill("Two people for every deployment")
    desk.page.get_by_role("button", name="Publish").click()
    expect(desk.page.get_by_role("heading", level=1)).to_contain_text("version 2")
    expect(desk.page.get_by_role("main")).to_contain_text("Two people for every deployment")
    assert desk.complaints == []
