"""A dead letter is found, understood and redelivered, with scripts and without; and how its pages look."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from playwright.sync_api import expect

from ledger.deliveries import deliver_once
from ledger.models import Attempt, Delivery
from ledger.rules.backoff import DELIVERY_WAITS_S
from ledger.rules.deliveries import TryEnd
from ledger.rules.states import DeliveryState
from ledger.transactions import database_clock
from review import deliveries, destinations
from review.queries.dead_letters import DeadFilter
from tests.browser.conftest import Desk, OpenDesk
from tests.browser.test_flow import SCRIPTS
from tests.browser.test_look import WIDTHS, look_at
from tests.support import make, told
from tests.support.cast import Cast
from tests.support.consumer import ConsumerProcess

ANSWER = "no such hook \u202e <b>here</b>"


def dead_after_all_its_tries(people: Cast, consumer: ConsumerProcess) -> Delivery:
    """What a consumer that refuses leaves behind: tried by the real sender until there is no try left."""
    attempt = make.confirmed(people.key, result_ref="re_9")
    consumer.answer(404, body=ANSWER)
    for _ in DELIVERY_WAITS_S:
        deliver_once()
        delivery = told.delivery_of(attempt)
        if delivery.state == DeliveryState.DEAD_LETTERED:
            return delivery
        rested(delivery)
    raise AssertionError("it is still being tried")


def rested(delivery: Delivery) -> None:
    """A test waits neither for the schedule nor for a destination to have rested."""
    told.make_due(delivery)
    type(delivery.destination).objects.filter(pk=delivery.destination_id).update(rests_until=None)


@SCRIPTS
def test_a_dead_letter_is_found_understood_redelivered_and_acked(
    people: Cast, consumer: ConsumerProcess, open_desk: OpenDesk, scripts: bool
) -> None:
    told.destination(people.tenant, url=consumer.url)
    delivery = dead_after_all_its_tries(people, consumer)
    tries = delivery.tries
    desk = open_desk(java_script_enabled=scripts)
    desk.open("/deliveries/")
    desk.sign_in("operator")

    desk.page.get_by_role("link", name="Dead letters").click()
    expect(desk.page.locator("tbody")).to_contain_text("Refused")
    desk.page.get_by_role("link", name="1 dead letters of books: Refused").click()
    desk.page.get_by_role("link", name="Mail Invoice 7 to ada@example.org").click()
    expect(desk.page.locator(".question")).to_contain_text("All its tries are used up")
    expect(desk.page.locator("#try")).to_contain_text("404")
    expect(desk.page.locator("#try pre")).to_contain_text("U+202E")
    expect(desk.page.locator("main")).to_contain_text(
        "No tool runs: this part of the program cannot reach one."
    )
    desk.page.get_by_role("link", name="Try 1", exact=True).click()
    expect(desk.page.locator("#try-heading")).to_have_text("Try 1: Refused")

    desk.page.get_by_role("link", name="Redeliver", exact=True).click()
    desk.page.get_by_label("Reason").fill("They mended their hook")
    desk.page.get_by_role("button", name="Redeliver", exact=True).click()
    expect(desk.page.get_by_role("heading", name="Recorded: Redeliver by operator")).to_be_visible()
    consumer.answer(204)
    rested(delivery)
    deliver_once()
    desk.page.get_by_role("link", name="Show it as it is now").click()
    expect(desk.page.locator(".question .state")).to_have_text("Acked")
    expect(desk.page.locator("#try")).to_contain_text("a person had it redelivered before")

    desk.page.locator(".question").get_by_role("link", name="email.send:").click()
    proof = f"execution attempts: 1, delivery tries: {tries + 1}"
    expect(desk.page.locator(".question")).to_contain_text(proof)
    expect(desk.page.get_by_role("region", name="Delivery")).to_contain_text("Acked")
    desk.shot(f"proof-{'scripts' if scripts else 'no-scripts'}")
    assert (Attempt.objects.count(), len({one.webhook_id for one in consumer.received()})) == (1, 1)
    assert desk.complaints == []


@SCRIPTS
def test_many_are_redelivered_by_a_plan(
    people: Cast, consumer: ConsumerProcess, open_desk: OpenDesk, scripts: bool
) -> None:
    told.destination(people.tenant, url=consumer.url)
    for _ in range(3):
        told.dead(make.confirmed(people.key), people.second_operator)
    desk = open_desk(java_script_enabled=scripts)
    desk.open("/dead-letters/")
    desk.sign_in("operator")
    desk.page.get_by_role("link", name="Redeliver these 3 of books").click()
    expect(desk.page.get_by_role("heading", level=1)).to_have_text("Redeliver 3 dead letters to books")
    desk.page.get_by_label("How many a second").fill("100")
    desk.page.get_by_label("Reason").fill("They are back")
    desk.page.get_by_role("button", name="Redeliver these 3").click()
    expect(desk.page.get_by_role("heading", level=1)).to_contain_text("0 of 3 had their turn")
    while Delivery.objects.exclude(state=DeliveryState.ACKED).exists():
        deliver_once()
    desk.page.get_by_role("link", name="Show it as it is now").click()
    expect(desk.page.get_by_role("heading", level=1)).to_contain_text("3 of 3 had their turn")
    assert len(consumer.received()) == 3
    assert desk.complaints == []


@SCRIPTS
def test_a_destination_is_paused_resumed_and_given_a_new_secret(
    people: Cast, open_desk: OpenDesk, scripts: bool
) -> None:
    destination = told.destination(people.tenant)
    desk = open_desk(java_script_enabled=scripts)
    desk.open(f"/destinations/{destination.pk}/")
    desk.sign_in("admin")
    for press in ("Pause destination", "Resume destination"):
        desk.page.get_by_role("link", name=press).click()
        desk.page.get_by_label("Reason").fill(f"{press}, because")
        desk.page.get_by_role("button", name=press).click()
        expect(desk.page.get_by_role("region", name="What was done to it")).to_contain_text(
            f"{press}, because"
        )
    desk.page.get_by_role("link", name="Rotate the secret").click()
    desk.page.get_by_label("1 hour").check()
    desk.page.get_by_role("button", name="Rotate the secret").click()
    expect(desk.page.locator("#secret code")).to_contain_text("whsec_")
    desk.page.get_by_role("link", name="Show it as it is now").click()
    expect(desk.page.locator("#secret")).to_have_count(0)
    assert desk.complaints == []


def pages(people: Cast) -> Mapping[str, str]:
    """Name → address of the pages of deliveries, with deliveries in every state."""
    books = told.destination(people.tenant)
    crm = told.destination(people.tenant, "customer-relations-and-long-names", tool_globs=(make.MAIL,))
    told.acked(told.delivery_of(make.confirmed(people.key)), people.key, duplicate=True)
    told.dead(make.confirmed(people.key), people.operator)
    tried = told.delivery_of(make.confirmed(people.key, args={"to": "p\u0430ypal", "subject": "x" * 200}))
    told.tried(tried)
    answer = f"<h1>503</h1> {ANSWER} ".encode() * 40
    told.answered(tried, 503, TryEnd.UNAVAILABLE, answer, answer_cut=True, took_ms=20_031)
    dead = Delivery.objects.filter(state=DeliveryState.DEAD_LETTERED).get()
    destinations.pause(people.admin, crm.pk, why="They asked for it")
    chosen = DeadFilter(dead.destination_id)
    plan_id = deliveries.plan_redelivery(
        people.operator, chosen, until=database_clock(), why="They are back", rate_per_s=0.5
    )
    of_error = f"destination={dead.destination_id}&error=never_tried"
    return {
        "deliveries": "/deliveries/",
        "deliveries-none": "/deliveries/?state=PENDING&error=gone",
        "delivery": f"/deliveries/{tried.pk}/",
        "delivery-interrupted": f"/deliveries/{tried.pk}/?try=1",
        "delivery-dead": f"/deliveries/{dead.pk}/",
        "redeliver": f"/deliveries/{dead.pk}/redeliver/",
        "dead-letter": f"/deliveries/{tried.pk}/dead-letter/",
        "dead-letters": "/dead-letters/",
        "plan-confirm": f"/dead-letters/redeliver/?{of_error}",
        "plan": f"/redeliveries/{plan_id}/",
        "destinations": "/destinations/",
        "destination": f"/destinations/{books.pk}/",
        "destination-paused": f"/destinations/{crm.pk}/",
        "destination-rotate": f"/destinations/{books.pk}/rotate-secret/",
        "destination-pause": f"/destinations/{books.pk}/pause/",
        "destination-add": "/destinations/add/",
        "operation": f"/operations/{tried.operation_id}/",
        "numbers": "/numbers/",
        "help-deliveries": "/help/",
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_of_deliveries_is_accessible_and_quiet(
    people: Cast, open_desk: OpenDesk, scheme: str, width: int
) -> None:
    desk: Desk = open_desk(viewport={"width": width, "height": 800}, color_scheme=scheme)
    desk.open("/destinations/")
    desk.sign_in("operator")
    faults = look_at(desk, "destinations-none", scheme, width)
    desk.open("/dead-letters/")
    faults += look_at(desk, "dead-letters-none", scheme, width)
    addresses = pages(people)
    for name, path in addresses.items():
        if name != "destination-add":
            desk.open(path)
            faults += look_at(desk, name, scheme, width)
    admin = open_desk(viewport={"width": width, "height": 800}, color_scheme=scheme)
    admin.open(addresses["destination-add"])
    admin.sign_in("admin")
    for name in ("destination-add", "destination", "destination-rotate", "destination-pause"):
        admin.open(addresses[name])
        faults += look_at(admin, f"admin-{name}", scheme, width)
    assert faults == []
