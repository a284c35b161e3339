"""Dead letters, plans that redeliver many of them, and destinations, as people see and press them."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from ledger import deliveries as ledger_deliveries
from ledger import http
from ledger.events import Actor
from ledger.models import Destination, DestinationSecret, RedeliveryPlan
from ledger.rules.deliveries import TryEnd
from ledger.transactions import database_clock
from review import destinations
from review.queries import redeliveries
from tests.dashboard.conftest import SignIn, body_of
from tests.support import make, told
from tests.support.cast import Cast


def test_dead_letters_stand_by_destination_and_class_of_error(
    people: Cast, destination: Destination, signed_in: SignIn
) -> None:
    for end in (TryEnd.UNAVAILABLE, TryEnd.UNAVAILABLE, TryEnd.REFUSED):
        attempt = make.confirmed(people.key)
        told.answered(told.delivery_of(attempt), 500, end)
        told.dead(attempt, people.operator)
    body = body_of(signed_in(people.operator), "/dead-letters/")
    assert "Redeliver these 2 of books: Unavailable (5xx)" in body
    assert "Redeliver these 1 of books: Refused" in body
    assert 'Dead letters <span class="count">3</span>' in body
    assert "needs the right to decide work" in body_of(signed_in(people.viewer), "/dead-letters/")


def test_a_plan_is_counted_before_it_is_frozen_and_freezes_no_later_ones(
    people: Cast, destination: Destination, signed_in: SignIn
) -> None:
    attempts = [make.confirmed(people.key) for _ in range(3)]
    for attempt in attempts[:2]:
        told.dead(attempt, people.operator)
    client = signed_in(people.operator)
    path = f"/dead-letters/redeliver/?destination={destination.pk}&error=never_tried"
    body = body_of(client, path)
    assert "Redeliver 2 dead letters to books" in body
    until = re.search(r'name="until" value="([^"]+)"', body)
    assert until is not None
    told.dead(attempts[2], people.operator)
    typed = {"why": "They are back", "rate_per_s": "2.5", "until": until[1]}
    answer = client.post(path, typed)
    assert answer.status_code == 303
    assert answer["Location"].startswith("/redeliveries/pln_")
    body = body_of(client, answer["Location"])
    for shown in ("0 of 2 had their turn", "They are back", "2.5 a second", "waits for its turn", "running"):
        assert shown in body, shown
    told.acked(told.delivery_of(attempts[0]), people.key)
    assert "will be skipped: it is ACKED" in body_of(client, answer["Location"])
    assert client.post(f"{answer['Location']}cancel/").status_code == 303
    assert "cancelled before its turn" in body_of(client, answer["Location"])
    assert client.post(f"{answer['Location']}cancel/").status_code == 409


def test_an_empty_filter_and_an_empty_plan_are_refused(
    people: Cast, destination: Destination, signed_in: SignIn
) -> None:
    client = signed_in(people.operator)
    typed = {"why": "all of it", "rate_per_s": "5", "until": database_clock().isoformat()}
    for query in ("", "error=gone", f"destination={destination.pk}&error=what"):
        assert client.get(f"/dead-letters/redeliver/?{query}").status_code == 400, query
        assert client.post(f"/dead-letters/redeliver/?{query}", typed).status_code == 400, query
    path = f"/dead-letters/redeliver/?destination={destination.pk}"
    assert "There is nothing to redeliver" in body_of(client, path)
    assert client.post(path, typed).status_code == 409
    for wrong in ({"rate_per_s": "0"}, {"rate_per_s": "nan"}, {"until": "yesterday"}, {"why": ""}):
        assert client.post(path, {**typed, **wrong}).status_code == 422, wrong


def test_a_plan_freezes_nothing_of_a_time_that_no_page_could_have_shown(
    people: Cast, destination: Destination, signed_in: SignIn
) -> None:
    told.dead(make.confirmed(people.key), people.operator)
    client, path = signed_in(people.operator), f"/dead-letters/redeliver/?destination={destination.pk}"
    typed = {"why": "back", "rate_per_s": "5"}
    later = (database_clock() + timedelta(minutes=1)).isoformat()
    for until in ("9999-12-31T23:59:59-14:00", later):
        answer = client.post(path, {**typed, "until": until})
        assert (answer.status_code, b"open the page again" in answer.content) == (422, True), until
    assert client.post(path, {**typed, "until": "0001-01-01T00:00:00+14:00"}).status_code == 409
    assert not RedeliveryPlan.objects.exists()


def test_the_lines_of_a_plan_go_on_over_pages(
    people: Cast, destination: Destination, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redeliveries, "PAGE_SIZE", 1)
    for _ in range(2):
        told.dead(make.confirmed(people.key), people.operator)
    client = signed_in(people.operator)
    typed = {"why": "back", "rate_per_s": "5", "until": database_clock().isoformat()}
    here = client.post(f"/dead-letters/redeliver/?destination={destination.pk}", typed)["Location"]
    more = re.search(r'href="(\?cursor=[^"]*)"', client.get(here).content.decode())
    assert more is not None
    assert client.get(here + more[1]).status_code == 200
    assert client.get(here + "?cursor=nonsense").status_code == 400


def test_a_secret_is_shown_once_and_a_second_press_rotates_nothing(
    people: Cast, destination: Destination, signed_in: SignIn
) -> None:
    client = signed_in(people.admin)
    path = f"/destinations/{destination.pk}/rotate-secret/"
    replaces = re.search(r'name="replaces" value="(\d+)"', body_of(client, path))
    assert replaces is not None
    typed = {"overlap_h": "24", "replaces": replaces[1]}
    answer = client.post(path, typed)
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "no-store, private"
    (secret,) = set(re.findall(r"whsec_[A-Za-z0-9+/=]+", answer.content.decode()))
    assert secret not in body_of(client, f"/destinations/{destination.pk}/")
    assert client.post(path, typed).status_code == 409
    assert client.post(path, {**typed, "overlap_h": "5"}).status_code == 422
    assert DestinationSecret.objects.count() == 2
    assert "signs beside the newer one" in body_of(client, f"/destinations/{destination.pk}/")


def test_an_address_that_must_not_be_asked_is_refused_where_it_is_typed(
    people: Cast, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_url: str) -> None:
        raise http.AddressRefused("10.0.0.7 is a private address")

    monkeypatch.setattr(http, "check_address", refuse)
    typed = {"tenant": "acme", "name": "inside", "url": told.ADDRESS, "ack": "response"}
    answer = signed_in(people.admin).post("/destinations/add/", typed)
    assert answer.status_code == 422
    assert b"10.0.0.7 is a private address" in answer.content
    assert not Destination.objects.exists()


def test_a_test_event_is_sent_by_the_ledger(
    people: Cast, destination: Destination, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, here = signed_in(people.admin), f"/destinations/{destination.pk}/"
    sent: list[str] = []

    def send_test(*, destination: Destination, actor: Actor) -> None:
        sent.append(f"{destination.name} by {actor.name}")

    monkeypatch.setattr(ledger_deliveries, "send_test", send_test)
    assert "Posts one signed test event to books now" in body_of(client, here)
    assert client.post(f"{here}test/")["Location"] == f"{here}#changes"
    assert sent == ["books by admin"]


def test_what_waits_for_a_paused_destination_has_no_next_try(
    people: Cast, destination: Destination, signed_in: SignIn
) -> None:
    make.confirmed(people.key)
    destinations.pause(people.admin, destination.pk, why="they asked")
    client = signed_in(people.viewer)
    assert "nothing while books is paused" in body_of(client, "/deliveries/")
    body = body_of(client, f"/destinations/{destination.pk}/")
    for shown in ("paused by a person", "they asked", "oldest"):
        assert shown in body, shown
    assert 'Destinations <span class="count">1 paused</span>' in body_of(client, "/dead-letters/")
