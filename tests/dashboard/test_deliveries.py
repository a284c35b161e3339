"""What the pages of deliveries show, and what a press on them records."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.icons import DELIVERY_MEANINGS, DELIVERY_WORDS, HEALTH_WORDS
from ledger.models import Attempt, Delivery, Destination
from ledger.rules.deliveries import DeadReason, PauseReason, TryEnd
from ledger.rules.states import DeliveryState
from review.queries import deliveries as list_queries
from review.queries.delivery_words import DEAD_WORDS, END_WORDS, PAUSE_WORDS
from review.queries.destinations import Health
from tests.dashboard.conftest import SignIn, body_of
from tests.support import make, told
from tests.support.cast import Cast

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
NO_TOOL = (
    "Redelivering sends the stored result again. No tool runs: this part of the program cannot reach one."
)
HOSTILE = b"<script>alert(1)</script>\xe2\x80\xae\xff\x00 Printer on fire"


def test_everything_a_delivery_can_be_has_words() -> None:
    assert set(DELIVERY_WORDS) == set(DELIVERY_MEANINGS) == set(DeliveryState)
    assert set(HEALTH_WORDS) == set(Health)
    assert set(TryEnd) <= set(END_WORDS)
    assert set(DEAD_WORDS) == set(DeadReason)
    assert set(PAUSE_WORDS) == set(PauseReason)


def test_the_word_retry_stands_in_no_template_and_on_no_button() -> None:
    words = re.compile(r"\bretr(y|ies|ied|ying)\b", re.IGNORECASE)
    found = [str(path) for path in TEMPLATES.rglob("*.html") if words.search(path.read_text())]
    assert found == []
    sources = [*Path("review").rglob("*.py"), *Path("dashboard").rglob("*.py")]
    labels = [line for path in sources for line in path.read_text().splitlines() if "label" in line.lower()]
    assert [line for line in labels if words.search(line)] == []


def test_the_list_says_state_destination_what_settlement_tries_and_next_step(
    people: Cast, destination: Destination, signed_in: SignIn
) -> None:
    make.confirmed(people.key)
    body = body_of(signed_in(people.viewer), "/deliveries/")
    for shown in ("Pending", "books", "Mail Invoice 7 to ada@example.org", "settlement 1: confirmed", "Acme"):
        assert shown in body, shown
    assert "the next try" in body


def test_filters_live_in_the_address(people: Cast, destination: Destination, signed_in: SignIn) -> None:
    other = told.destination(people.tenant, "crm")
    make.confirmed(people.key, operation_key="invoice:7")
    client = signed_in(people.operator)
    crm, books = (Delivery.objects.get(destination=of).pk for of in (other, destination))

    def listed(query: str) -> set[str]:
        body = client.get(f"/deliveries/?{query}").content.decode()
        return {pk for pk in (crm, books) if f"/deliveries/{pk}/" in body}

    assert listed("") == listed("q=invoice") == listed("tenant=acme") == {crm, books}
    assert listed(f"destination={other.pk}") == {crm}
    assert (
        listed("q=nothing")
        == listed("tenant=globex")
        == listed("error=gone")
        == listed("state=ACKED")
        == set()
    )
    assert listed("error=never_tried") == {crm, books}
    assert listed(f"state=PENDING&destination={books}") == set()
    for bad in ("state=NOWHERE", "error=what", "cursor=nonsense"):
        assert client.get(f"/deliveries/?{bad}").status_code == 400, bad


def test_the_list_goes_on_over_pages(
    people: Cast, destination: Destination, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_queries, "PAGE_SIZE", 2)
    rows = [told.delivery_of(make.confirmed(people.key)).pk for _ in range(3)]
    client = signed_in(people.operator)
    first = client.get("/deliveries/?state=PENDING").content.decode()
    more = re.search(r'href="(\?[^"]*cursor=[^"]*)"', first)
    assert more is not None
    assert "state=PENDING" in more[1]
    second = client.get("/deliveries/" + more[1].replace("&amp;", "&")).content.decode()
    assert [[pk for pk in rows if pk in page] for page in (first, second)] == [rows[1:], rows[:1]]


def test_queries_do_not_grow_with_rows(people: Cast, destination: Destination, signed_in: SignIn) -> None:
    client = signed_in(people.operator)
    attempt = make.confirmed(people.key)
    dead = told.dead(attempt, people.operator)
    make.confirmed(people.key)
    paths = {
        "/deliveries/": 10,
        "/dead-letters/": 10,
        "/destinations/": 10,
        f"/deliveries/{dead.pk}/": 14,
        f"/operations/{attempt.operation_id}/": 12,
        f"/destinations/{destination.pk}/": 11,
        "/numbers/": 30,
    }
    few = {path: queries(client, path) for path in paths}
    for number in range(4):
        told.destination(people.tenant, f"more-{number}")
        told.dead(make.confirmed(people.key), people.operator)
        told.answered(dead, 500, TryEnd.UNAVAILABLE)
    own = 3  # session, person, navigation
    for path, most in paths.items():
        assert queries(client, path) == few[path], path
        assert few[path] <= most + own, (path, few[path])


def queries(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(path).status_code == 200
    return len(captured)


def test_the_page_of_one_shows_its_tries_and_the_answer_inert(
    people: Cast, destination: Destination, signed_in: SignIn
) -> None:
    delivery = told.delivery_of(make.confirmed(people.key))
    told.tried(delivery)
    told.answered(delivery, 500, TryEnd.UNAVAILABLE, HOSTILE)
    body = body_of(signed_in(people.operator), f"/deliveries/{delivery.pk}/")
    for shown in (
        NO_TOOL,
        "Interrupted: its sender was lost",
        "Unavailable (5xx)",
        "x-from",
        "U+202E",
        "U+0000",
        r"\xff",
        delivery.webhook_id,
        "12 ms",
        "ledger.operation.confirmed.v1",
        "&lt;script&gt;",
    ):
        assert shown in body, shown
    assert "<script>alert" not in body
    first = body_of(signed_in(people.operator), f"/deliveries/{delivery.pk}/?try=1")
    assert "This try has no end" in first
    for bad in ("9", "x", "9" * 40):
        assert signed_in(people.operator).get(f"/deliveries/{delivery.pk}/?try={bad}").status_code == 400


def test_what_the_policy_hides_is_hidden_wherever_it_turns_up(
    people: Cast, destination: Destination, signed_in: SignIn
) -> None:
    tools = {**make.TOOLS, make.TICKET: {**make.TOOLS[make.TICKET], "mask": ["/title"]}}
    make.policy(people.tenant, by=people.admin, tools=tools)
    attempt = make.confirmed(people.key, make.TICKET, result_ref="re Printer on fire")
    delivery = told.delivery_of(attempt)
    told.answered(delivery, 400, TryEnd.REFUSED, HOSTILE)
    client = signed_in(people.operator)
    paths = ("/deliveries/", f"/deliveries/{delivery.pk}/", f"/operations/{attempt.operation_id}/")
    for path in paths:
        body = body_of(client, path)
        assert "Printer on fire" not in body, path
        assert "[masked]" in body or path == "/deliveries/", path


def test_redelivering_records_who_and_why_and_says_what_it_became(
    people: Cast, destination: Destination, signed_in: SignIn
) -> None:
    attempt = make.confirmed(people.key)
    dead = told.dead(attempt, people.second_operator, why="they closed")
    client = signed_in(people.operator)
    body = body_of(client, f"/deliveries/{dead.pk}/redeliver/")
    assert "Sends the stored result of settlement 1 to books once more, under the same webhook id." in body
    answer = client.post(f"/deliveries/{dead.pk}/redeliver/", {"why": "They opened again"}, follow=True)
    body = answer.content.decode()
    assert answer.redirect_chain[0][1] == 303
    for shown in ("Recorded: Redeliver by operator", "They opened again", "they closed", "second-operator"):
        assert shown in body, shown
    assert Delivery.objects.get().state == DeliveryState.PENDING
    lost = client.post(f"/deliveries/{dead.pk}/redeliver/", {"why": "Once more please"})
    assert lost.status_code == 409
    for refused in (b"It is still being tried", b"Once more please", b"Nothing was changed by this press"):
        assert refused in lost.content
    assert Attempt.objects.count() == 1


def test_the_fragment_alone_goes_to_htmx(people: Cast, destination: Destination, signed_in: SignIn) -> None:
    dead = told.dead(make.confirmed(people.key), people.operator)
    client = signed_in(people.operator)
    asked = client.get(f"/deliveries/{dead.pk}/redeliver/", headers={"HX-Request": "true"})
    assert b"<html" not in asked.content
    assert b'name="why"' in asked.content
    pressed = client.post(
        f"/deliveries/{dead.pk}/redeliver/", {"why": "open again"}, headers={"HX-Request": "true"}
    )
    assert pressed["HX-Redirect"].startswith(f"/deliveries/{dead.pk}/?answer=")


def test_an_acked_one_gets_a_further_copy_and_stays_acked(
    people: Cast, destination: Destination, signed_in: SignIn
) -> None:
    delivery = told.acked(told.delivery_of(make.confirmed(people.key)), people.key, duplicate=True)
    client = signed_in(people.operator)
    body = body_of(client, f"/deliveries/{delivery.pk}/")
    assert "the consumer gets one further copy, marked as a replay" in body
    assert "it had come before" in body
    assert client.post(f"/deliveries/{delivery.pk}/redeliver/", {"why": "lost it"}).status_code == 303
    assert "a further copy is sent" in body_of(client, f"/deliveries/{delivery.pk}/")


def test_the_lanes_stand_on_the_page_of_the_operation_and_of_its_item(
    people: Cast, destination: Destination, signed_in: SignIn
) -> None:
    attempt = make.confirmed(people.key, result_ref="res_9")
    told.answered(told.delivery_of(attempt), 500, TryEnd.UNAVAILABLE)
    client = signed_in(people.viewer)
    body = body_of(client, f"/operations/{attempt.operation_id}/")
    for shown in (
        "execution attempts: 1, delivery tries: 1",
        "res_9",
        "books",
        "delivery-lane",
        "execution-lane",
    ):
        assert shown in body, shown
    assert client.get(f"/operations/{attempt.operation_id}/?before=x").status_code == 400
    assert body_of(client, f"/operations/{attempt.operation_id}/?before=2").count('id="event-') == 1
    attempt = make.for_a_person(people.key)
    here = f"/review/{make.item_of(attempt).pk}/"
    body = body_of(client, here)
    assert "execution attempts: 1, delivery tries: 0" in body
    assert "Nobody was told" in body
    make.reported(people.key, attempt, "succeeded", result_ref="tkt_1")
    body = body_of(client, here)
    assert f"/deliveries/{told.delivery_of(attempt).pk}/" in body
    own = 3  # session, person, navigation
    assert queries(client, here) <= 18 + own
    contradicted = make.reported(people.key, attempt, "failed", error_class="timeout")
    assert queries(client, f"/review/{make.item_of(contradicted).pk}/") <= 18 + own


def test_the_numbers_are_those_of_own_tenants(
    people: Cast, destination: Destination, signed_in: SignIn
) -> None:
    told.dead(make.confirmed(people.key), people.operator)
    make.confirmed(people.key)
    body = body_of(signed_in(people.viewer), "/numbers/")
    for shown in (
        "ledger_dead_letters",
        "dead lettered by person",
        "ledger_oldest_undelivered_seconds",
        "books",
    ):
        assert shown in body, shown
    assert "Not enough data" in body
    assert "books" not in body_of(signed_in(people.stranger), "/numbers/")
