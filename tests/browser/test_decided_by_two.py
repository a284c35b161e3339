"""What takes two people, seen by each of them in a window of their own, with pictures."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from guardian.shortcuts import remove_perm
from playwright.sync_api import expect

from ledger.access import Grant
from ledger.client import Ledger
from ledger.lifecycle import LeaveRefused, unlocked_case
from ledger.models import Attempt, Provider, ReviewItem
from ledger.reconciliation import sweep_once
from ledger.rules.authority import Reason
from ledger.rules.looked_up import LookedUpKind, Record
from ledger.rules.states import State
from ledger.transactions import database_clock
from tests.browser.conftest import Desk, OpenDesk
from tests.support import make
from tests.support.cast import Cast

PATIENCE_MS = 60_000  # a password takes its time to be checked, also on a busy machine


def at_item(open_desk: OpenDesk, who: str, attempt: Attempt) -> Desk:
    desk = open_desk()
    desk.open(f"/review/{make.item_of(attempt).pk}/")
    desk.sign_in(who)
    return desk


def press(desk: Desk, decision: str, why: str, **typed: str) -> None:
    desk.page.get_by_role("link", name=decision).click()
    for label, text in typed.items():
        desk.page.get_by_label(label).fill(text)
    desk.page.get_by_label("Reason").fill(why)
    desk.page.get_by_role("button", name=decision).click()
    recorded = desk.page.get_by_role("heading", name=f"Recorded: {decision}")
    expect(recorded).to_be_visible(timeout=PATIENCE_MS)


def doubtful_refund(people: Cast) -> Attempt:
    """A refund whose provider keeps no keys: it was not found, so only people may send it again."""
    rule = {"effect": "payment", "summary": make.TOOLS[make.REFUND]["summary"]}
    make.policy(people.tenant, by=people.admin, tools={**make.TOOLS, make.REFUND: rule})
    return make.looked_up(make.unknown(people.key, make.REFUND), LookedUpKind.NO_LOOKUP)


def test_a_refund_needs_two_and_one_loses_the_right_before_leave(people: Cast, open_desk: OpenDesk) -> None:
    refund = doubtful_refund(people)
    first = at_item(open_desk, "approver", refund)
    press(first, "Approve and dispatch", "The customer waits")
    expect(first.page.locator("#answer")).to_contain_text("Waits for a second approval")
    first.shot("refund-one-of-two")
    second = at_item(open_desk, "second-approver", refund)
    press(second, "Approve and dispatch", "Checked with the shop")
    expect(second.page.locator("#answer")).to_contain_text("Approved by approver and second-approver")

    remove_perm("ledger.decide_work", people.approver, people.tenant)
    second.page.reload()
    expect(second.page.locator(".question")).to_contain_text("approver-refused")
    refused = make.ask_leave(people.key, refund)
    assert isinstance(refused, LeaveRefused)
    assert refused.reasons == (Reason.APPROVER_REFUSED,)

    sweep_once()
    second.open(f"/review/{make.item_of(refund).pk}/")
    votes = second.page.get_by_role("region", name="Approval")
    expect(votes.locator("s")).to_contain_text("Approval of approver and second-approver")
    expect(votes).to_contain_text("approver lost the right")
    expect(second.page.locator("main")).to_contain_text("approver-refused")
    second.shot("refund-approver-lost-the-right")
    assert second.axe() == []
    again = make.ask_leave(people.key, refund)
    assert isinstance(again, LeaveRefused)
    assert again.reasons == (Reason.APPROVER_REFUSED,)
    assert first.complaints == second.complaints == []


def test_a_wrong_argument_is_corrected_and_exactly_that_is_sent(people: Cast, open_desk: OpenDesk) -> None:
    held = make.held(people.key)
    operator = at_item(open_desk, "operator", held)
    operator.page.get_by_role("link", name="Relink to corrected arguments").click()
    operator.page.get_by_role("textbox", name="Corrected arguments").fill('{"version": "2026.12"}')
    operator.page.get_by_label("Reason").fill("Last month's version")
    operator.page.get_by_role("button", name="Show what changes").click()
    diff = operator.page.locator(".diff")
    expect(diff).to_contain_text("/version")
    expect(diff.locator("del")).to_contain_text("2026.11")
    expect(diff.locator("ins")).to_contain_text("2026.12")
    operator.shot("correction-diff")
    operator.page.get_by_role("button", name="Relink to corrected arguments").click()
    expect(operator.page.get_by_role("heading", name="Recorded: Relink")).to_be_visible()

    corrected = unlocked_case(held.operation).newest
    approver = at_item(open_desk, "approver", corrected)
    expect(approver.page.get_by_role("heading", name="hash differs: 1 field")).to_be_visible()
    press(approver, "Approve and dispatch", "Now it is right")
    approver.shot("correction-approved")
    text, _ = make.key_of(people.agent, Grant(scopes=["tool:*"], verbs=["ingest", "read"], days=1))
    asked, sent = dict(make.ARGS[make.DEPLOY]), []
    agent = Ledger(approver.address, text)
    with agent.operation(held.operation.operation_key, tool=make.DEPLOY, args=asked) as op:
        sent.append(op.args)
        op.confirm(result_ref="deployed")
    agent.close()
    assert sent == [{"version": "2026.12"}]
    assert make.fresh(corrected).state == State.OUTCOME_CONFIRMED
    approver.open(f"/review/{make.item_of(corrected).pk}/")
    expect(approver.page.locator("main")).to_contain_text("Confirmed")
    approver.shot("correction-sent")
    assert operator.complaints == approver.complaints == []


def test_what_people_confirmed_is_contradicted_and_both_see_it(people: Cast, open_desk: OpenDesk) -> None:
    provider = Provider.objects.create(tenant=people.tenant, name="bank", adapter="http", config={})
    refund = make.unknown(people.key, make.REFUND)
    first = at_item(open_desk, "operator", refund)
    press(first, "Confirm it did not happen", "Their log is empty")
    expect(first.page.get_by_role("region", name="What people say became of it")).to_contain_text(
        "Settles nothing yet"
    )
    first.shot("statement-one-of-two")
    second = at_item(open_desk, "second-operator", refund)
    expect(second.page.get_by_role("region", name="What people say became of it")).to_contain_text(
        "Their log is empty"
    )
    press(second, "Confirm it did not happen", "I asked their support")
    assert make.fresh(refund).state == State.FAILED

    found = Record(reference="re_000042", content="same", state="done", data={"amount": 125})
    make.looked_up(refund, LookedUpKind.FOUND, found, provider=provider)
    conflict = ReviewItem.objects.get(closed_at=None)
    for name, desk in (("operator", first), ("second-operator", second)):
        desk.open("/review/?tab=mine")
        desk.page.get_by_role("link", name="Refund 125 EUR to cus_7").click()
        sides = desk.page.get_by_role("region", name="Both sides")
        expect(sides).to_contain_text("operator and second-operator decided this")
        expect(sides).to_contain_text("Their log is empty")
        expect(sides).to_contain_text("re_000042")
        assert f"/review/{conflict.pk}/" in desk.page.url
        desk.shot(f"contradicted-{name}")
        assert desk.axe() == []
    assert first.complaints == second.complaints == []


def test_a_stale_sign_in_is_asked_for_the_password(people: Cast, open_desk: OpenDesk) -> None:
    held = make.held(people.key)
    desk = at_item(open_desk, "approver", held)
    expire_sign_ins()
    desk.page.get_by_role("link", name="Approve and dispatch").click()
    expect(desk.page.get_by_label("Your password")).to_be_visible()
    desk.shot("approve-password-again")
    assert desk.axe() == []
    desk.page.get_by_label("Your password").fill("wrong")
    desk.page.get_by_label("Reason").fill("Planned")
    desk.page.get_by_role("button", name="Approve and dispatch").click()
    refused = desk.page.get_by_text("This is not your password. Nothing was decided.")
    expect(refused).to_be_visible(timeout=PATIENCE_MS)
    expect(desk.page.get_by_label("Reason")).to_have_value("Planned")
    desk.page.get_by_label("Your password").fill("approver-secret")
    desk.page.get_by_role("button", name="Approve and dispatch").click()
    recorded = desk.page.get_by_role("heading", name="Recorded: Approve and dispatch")
    expect(recorded).to_be_visible(timeout=PATIENCE_MS)
    assert make.fresh(held).state == State.INTENT_RECORDED


def test_an_orphan_is_relinked_to_the_operation_it_belongs_to(people: Cast, open_desk: OpenDesk) -> None:
    make.confirmed(people.key, make.TICKET, operation_key="ticket:a", result_ref="tkt_1")
    orphan = make.for_a_person(people.key, operation_key="ticket:b")
    desk = at_item(open_desk, "operator", orphan)
    desk.page.get_by_role("link", name="Relink to another operation").click()
    expect(desk.page.locator(".bound")).to_contain_text("the same arguments")
    desk.shot("relink-candidates")
    assert desk.axe() == []
    desk.page.get_by_label("Key of the operation it belongs to").fill("ticket:a")
    desk.page.get_by_label("Reason").fill("A second key for the same ticket")
    desk.page.get_by_role("button", name="Relink to another operation").click()
    expect(desk.page.get_by_role("heading", level=1)).to_contain_text("Relinked to ticket:a by operator")
    desk.open("/review/duplicates/")
    expect(desk.page.get_by_role("heading", level=1)).to_contain_text("Possible duplicates")
    desk.shot("duplicates")
    assert desk.axe() == []
    assert desk.sticks_out() == 0
    assert desk.complaints == []


def expire_sign_ins() -> None:
    """Everybody signed in six minutes ago."""
    for session in Session.objects.all():
        store = SessionStore(session.session_key)
        store["authenticated_at"] = (database_clock() - timedelta(minutes=6)).isoformat()
        store.save()
