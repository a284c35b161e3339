"""R91: Invisible letters, and such as turn the direction, make what is shown differ from what is sent.

Kind: a person reads one thing and the machine another. Every such letter is shown with its code wherever the
arguments or the sentence made of them are, the stored bytes and their hash stay what they were, and the same
text with and without them has two hashes.
"""

from __future__ import annotations

import pytest
from django.test import Client

from ledger.rules.canonical import canonical_bytes, content_hash
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db

LETTERS = ("\u202e", "\u200b", "\u2066", "\U000e0100", "\u115f", "\r", "\x1b", "\u0430")
DECEIVING = {
    "title": "Pay \u202eAda\u200b to\u2066 p\u0430ypal\U000e0100 \u115f\r\x1b[2K" + " " * 300 + "now"
}
HONEST = {"title": "Pay Ada to paypal now"}


@pytest.fixture
def people(db: None) -> Cast:
    return cast()


@pytest.fixture
def window(people: Cast) -> Client:
    client = Client()
    client.force_login(people.operator, backend="django.contrib.auth.backends.ModelBackend")
    return client


def raw(body: str) -> list[str]:
    """Which of the letters stand on the page as they are."""
    return [f"U+{ord(letter):04X}" for letter in LETTERS if letter in body and letter not in "\r\u0430"]


def unmarked(body: str) -> list[str]:
    return [code for letter in LETTERS if (code := f"U+{ord(letter):04X}") not in body]


def test_the_item_shows_each_by_its_code_and_says_how_many(people: Cast, window: Client) -> None:
    item = make.item_of(make.for_a_person(people.key, args=DECEIVING))
    body = window.get(f"/review/{item.pk}/").content.decode()
    assert unmarked(body) == []
    assert raw(body) == []
    assert " " * 300 + "now" in body, "nothing of it is cut away"


def test_the_queue_and_the_comparison_show_them_too(people: Cast, window: Client) -> None:
    first = make.recorded(people.key, make.TICKET, args=HONEST)
    other = make.variant(people.key, first, DECEIVING)
    item = make.item_of(other)
    queue, page = window.get("/review/").content.decode(), window.get(f"/review/{item.pk}/").content.decode()
    assert "U+202E" in queue
    assert raw(queue) == raw(page) == []
    assert "hash differs: 1 field" in page
    assert unmarked(page) == []


def test_a_correction_typed_with_them_is_shown_marked_before_it_is_recorded(
    people: Cast, window: Client
) -> None:
    item = make.item_of(make.recorded(people.key, make.DEPLOY))
    typed = {"typed": '{"version": "2026.\u200b12"}', "why": "as they wrote", "step": "compare"}
    body = window.post(f"/review/{item.pk}/relink-arguments/", typed).content.decode()
    assert "What changes: 1 field" in body
    assert "U+200B" in body


def test_the_hash_is_of_what_was_sent_and_not_of_what_is_shown(people: Cast) -> None:
    attempt = make.for_a_person(people.key, args=DECEIVING)
    assert attempt.args == DECEIVING
    assert attempt.args_hash == content_hash(canonical_bytes(DECEIVING))
    assert attempt.args_hash != content_hash(canonical_bytes(HONEST))
