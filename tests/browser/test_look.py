"""Every page in light and dark, wide and narrow: axe, no sideways scrolling, no complaint of the browser."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from ledger import lifecycle
from ledger.fsck import kept, run_fsck
from ledger.lifecycle import OutcomeReport, Told
from ledger.models import FsckForm, FsckRun, ParkedFact, ReviewItem
from ledger.models.ids import attempt_id
from ledger.reconciliation import sweep_once
from ledger.rules.looked_up import LookedUpKind
from ledger.transactions import durable
from review import decisions, parked
from tests.browser.conftest import Desk, OpenDesk
from tests.support import make
from tests.support.cast import Cast

WIDTHS = (1280, 360)
RED = {
    "started_at": datetime(2026, 11, 27, 3, 17, tzinfo=UTC),
    "ended_at": datetime(2026, 11, 27, 3, 19, 40, tzinfo=UTC),
    "findings_count": 23,
    "counts": {"acme": 21, "": 1, "globex": 1},
    "findings": [
        {
            "invariant": "uses_equal_what_was_sent",
            "tenant": "acme",
            "subject_id": "att_01m8mhqmxxttp37e31mqs98jgm",
            "detail": "was sent with other arguments or under another rule than approved",
        },
        {
            "invariant": "triggers_are_there_and_enabled",
            "tenant": "",
            "subject_id": "ledger_event pgtrigger_append_only_0a1b2",
            "detail": "is disabled",
        },
    ],
}
REFUSED_PAGES = ("nothing-here", "unreadable-filter", "no-tenant")


def pages(people: Cast) -> Mapping[str, str]:
    """Name → address of every page, with work in every state a desk shows."""
    unknown = make.item_of(make.looked_up(make.unknown(people.key), LookedUpKind.UNAVAILABLE))
    sent = make.item_of(make.for_a_person(people.key, args={"title": "p\u0430ypal <b>bold</b> \u202e"}))
    held = make.item_of(make.held(people.key, actor="APPROVE NOW, says the planner", run="run-7", step="3"))
    approved, superseded = make.held(people.key), make.for_a_person(people.key)
    for attempt in (approved, superseded):
        decisions.approve(people.approver, make.item_of(attempt).pk, why="go")
    make.send(people.key, make.fresh(superseded))
    first = make.dispatched(people.key, make.REFUND)
    variant = make.item_of(make.variant(people.key, first, {**make.ARGS[make.REFUND], "amount": 900}))
    fact = parked_facts(people)
    closing, over = key_windows(people)
    return {
        "parked": "/review/parked/",
        "parked-dismissed": "/review/parked/?show=dismissed",
        "parked-fact": f"/review/parked/{fact.pk}/",
        "queue": "/review/",
        "queue-empty": "/review/?tab=mine",
        "queue-decided": "/review/?tab=decided",
        "unreadable-filter": "/review/?tab=nowhere",
        "unknown": f"/review/{unknown.pk}/",
        "manual-review": f"/review/{sent.pk}/",
        "held": f"/review/{held.pk}/",
        "key-window-closing": f"/review/{closing.pk}/",
        "key-window-over": f"/review/{over.pk}/",
        "approved": f"/review/{make.item_of(approved).pk}/",
        "superseded": f"/review/{make.item_of(superseded).pk}/",
        "variant": f"/review/{variant.pk}/",
        "approve": f"/review/{held.pk}/approve/",
        "approve-not-possible": f"/review/{variant.pk}/approve/",
        "reject": f"/review/{sent.pk}/reject/",
        "confirm-happened": f"/review/{sent.pk}/confirm-happened/",
        "relink": f"/review/{held.pk}/relink-arguments/",
        "relink-operation": f"/review/{sent.pk}/relink-operation/",
        "duplicates": "/review/duplicates/",
        "statements": f"/review/{said_by_one(people).pk}/",
        "assign": f"/review/{held.pk}/assign/",
        "arguments": f"/review/{sent.pk}/arguments/",
        "nothing-here": "/review/rev_nothing/",
        "help": "/help/",
        "problems": "/problems/",
        "problem": "/problems/on-hold",
    }


def key_windows(people: Cast) -> tuple[ReviewItem, ReviewItem]:
    """One that a provider is about to forget, escalated, and one that it has forgotten."""
    closing = make.first_sent(make.unknown(people.key), timedelta(hours=23, minutes=52))
    sweep_once()
    over = make.unknown(people.key)
    make.looked_up(over, LookedUpKind.UNAVAILABLE)
    return make.item_of(closing), make.item_of(make.first_sent(make.fresh(over), timedelta(hours=27)))


def said_by_one(people: Cast) -> ReviewItem:
    """A refund of which one person says that it happened."""
    refund = make.item_of(make.unknown(people.key, make.REFUND, args={**make.ARGS[make.REFUND], "amount": 7}))
    decisions.confirm_happened(people.operator, refund.pk, why="seen in their console", reference="re_7")
    return refund


def parked_facts(people: Cast) -> ParkedFact:
    """Reports about nothing known: with candidates and a note, as long as they come, and dismissed."""
    sent = make.for_a_person(people.key, args={"title": "Printer p\u0430ypal"})
    succeeded = OutcomeReport("worker-1", "succeeded", "res_9", "req_77fa01", args_hash=sent.args_hash)
    words = "<b>no</b> \u202e" + "x" * 300
    failed = OutcomeReport("worker-1", "failed", error_class="timeout", message=words)
    unknown = OutcomeReport("worker-1", "unknown")
    told = [
        (Told(operation_key="invoice:tenant-7:2026-08-11:send"), succeeded),
        (Told(attempt_id(), "a" * 255), failed),
        (Told(attempt_id()), unknown),
        (Told(attempt_id()), unknown),
    ]
    for about, report in (*told, told[0]):
        durable(lambda a=about, r=report: lifecycle.take_outcome(key=people.key, told=a, report=r))  # type: ignore[misc]
    first, *_, last = ParkedFact.objects.order_by("parked_at")
    parked.note(people.operator, first.pk, why="Asked the provider; they look for it.")
    parked.dismiss(people.operator, last.pk, why="A test of theirs.")
    return first


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_is_accessible_and_quiet(
    people: Cast, open_desk: OpenDesk, scheme: str, width: int
) -> None:
    desk = open_desk(viewport={"width": width, "height": 800}, color_scheme=scheme)
    faults: list[str] = []
    desk.open("/sign-in/")
    faults += look_at(desk, "sign-in", scheme, width)
    desk.sign_in("approver")
    for name, path in pages(people).items():
        desk.open(path)
        faults += look_at(desk, name, scheme, width)
    assert faults == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_system_page_is_accessible_and_quiet_red_or_not(
    people: Cast, open_desk: OpenDesk, scheme: str, width: int
) -> None:
    desk = open_desk(viewport={"width": width, "height": 800}, color_scheme=scheme)
    desk.open("/system/")
    desk.sign_in("admin")
    faults = look_at(desk, "system-never-run", scheme, width)
    kept(run_fsck(FsckForm.TOUCHED))
    FsckRun.objects.create(form=FsckForm.WHOLE, invariants=50, **RED)
    for name, path in (("system-red", "/system/"), ("queue-red", "/review/")):
        desk.open(path)
        faults += look_at(desk, name, scheme, width)
    assert faults == []


def test_on_a_phone_one_press_leads_to_what_can_be_done(people: Cast, open_desk: OpenDesk) -> None:
    item = make.item_of(make.for_a_person(people.key))
    desk = open_desk(viewport={"width": 360, "height": 740}, java_script_enabled=False)
    desk.open(f"/review/{item.pk}/")
    desk.sign_in("operator")
    desk.page.get_by_role("link", name="Decide").click()
    expect(desk.page.get_by_role("link", name="Reject")).to_be_in_viewport()
    headings = desk.page.locator(".item-grid h2").all_inner_texts()
    assert headings[:2] == ["Arguments", "What you can do"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_for_those_without_rights_are_accessible(
    people: Cast, open_desk: OpenDesk, scheme: str
) -> None:
    item = make.item_of(make.for_a_person(people.key))
    faults: list[str] = []
    viewer = open_desk(color_scheme=scheme)
    viewer.open(f"/review/{item.pk}/")
    viewer.sign_in("viewer")
    faults += look_at(viewer, "viewer", scheme, 1280)
    outsider = open_desk(color_scheme=scheme)
    outsider.open("/review/")
    outsider.sign_in("superuser")
    faults += look_at(outsider, "no-tenant", scheme, 1280)
    assert faults == []


def look_at(desk: Desk, name: str, scheme: str, width: int) -> list[str]:
    desk.shot(f"{name}-{scheme}-{width}")
    faults = [f"{name}: {violation}" for violation in desk.axe()]
    if desk.sticks_out() > 0:
        faults.append(f"{name}: {desk.sticks_out()} px wider than the window")
    faults += [f"{name}: {complaint}" for complaint in desk.complaints if not is_own_refusal(name, complaint)]
    desk.complaints.clear()
    return faults


def is_own_refusal(name: str, complaint: str) -> bool:
    """The browser notes the status of a page that refuses on purpose."""
    return name in REFUSED_PAGES and "Failed to load resource" in complaint
