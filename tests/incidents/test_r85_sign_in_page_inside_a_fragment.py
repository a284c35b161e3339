"""R85: A session ends over night, and the sign-in page is put where a row or a form was, or nothing happens.

Kind: an answer for a whole page, put into a part of one. Whatever asks without a session is sent to a whole
sign-in page that leads back to the page around it, never to a fragment's address, and never to a press: that
is made anew by a person who sees the item as it is by then.
"""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from ledger.models import Decision
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db
HOST = "http://testserver"


@pytest.fixture
def people() -> Cast:
    return cast()


def part_of(page: str) -> dict[str, str]:
    return {"HX-Request": "true", "HX-Current-URL": HOST + page}


def leads_back_to(sign_in: str) -> str:
    parts = urlsplit(sign_in)
    assert parts.path == "/sign-in/"
    return parse_qs(parts.query)["next"][0]


def test_a_fragment_and_a_press_lead_to_the_whole_page_and_back(people: Cast) -> None:
    item = make.item_of(make.for_a_person(people.key))
    page, press = f"/review/{item.pk}/?tab=mine", f"/review/{item.pk}/confirm-did-not-happen/"
    for answer in (
        Client().get(press, headers=part_of(page)),
        Client().post(press, {"why": "no"}, headers=part_of(page)),
        Client().get(f"/review/{item.pk}/changed/?seen=1", headers=part_of(page)),
    ):
        assert "Location" not in answer.headers, "the browser would follow it into the fragment"
        assert leads_back_to(answer["HX-Redirect"]) == page
        assert b"<form" not in answer.content
    assert not Decision.objects.exists()


def test_without_scripts_a_link_leads_back_to_itself_and_a_press_to_its_page(people: Cast) -> None:
    item = make.item_of(make.for_a_person(people.key))
    page, press = f"/review/{item.pk}/", f"/review/{item.pk}/reject/"
    link = Client().get(page)
    pressed = Client().post(press, {"why": "no"}, headers={"Referer": HOST + page})
    assert (link.status_code, pressed.status_code) == (303, 303)
    assert leads_back_to(link["Location"]) == leads_back_to(pressed["Location"]) == page
    elsewhere = Client().post(press, {"why": "no"}, headers={"Referer": "https://evil.example/review/"})
    assert leads_back_to(elsewhere["Location"]) == "/"
    assert not Decision.objects.exists()


def test_after_signing_in_the_item_is_shown_as_it_is_by_then(people: Cast) -> None:
    attempt = make.for_a_person(people.key)
    item, client = make.item_of(attempt), Client()
    page = f"/review/{item.pk}/"
    pressed = client.post(f"{page}reject/", {"why": "no", "what": "did_not"}, headers=part_of(page))
    make.reported(people.key, attempt, "succeeded", result_ref="re_1")
    typed = {
        "username": "operator",
        "password": "operator-secret",
        "next": leads_back_to(pressed["HX-Redirect"]),
    }
    shown = client.post("/sign-in/", typed, follow=True)
    assert shown.redirect_chain == [(page, 303)]
    assert "Confirmed" in shown.content.decode()
    assert make.fresh(attempt).state == "OUTCOME_CONFIRMED"
    assert not Decision.objects.exists()
