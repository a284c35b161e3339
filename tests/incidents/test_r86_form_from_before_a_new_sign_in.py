"""R86: Signing in anew in another tab makes the old tab's form invalid, and a whole error page lands in it.

Kind: an answer for a whole page, put into a part of one. Only the part that says what happened is swapped in;
nothing is decided, what was typed is kept, and loading the page again is all it takes.
"""

from __future__ import annotations

import pytest
from django.test import Client
from playwright.sync_api import expect

from ledger.models import Decision
from tests.browser.conftest import OpenDesk, chromium, open_desk  # noqa: F401
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]

SAYS = "This form is too old or came from elsewhere"
TYPED = "They never got it, says their support"


@pytest.fixture
def people(transactional_db: None) -> Cast:
    return cast()


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}], ids=["page", "fragment"])
def test_a_form_without_this_sessions_secret_decides_nothing(people: Cast, headers: dict[str, str]) -> None:
    item, client = make.item_of(make.for_a_person(people.key)), Client(enforce_csrf_checks=True)
    client.force_login(people.operator, backend="django.contrib.auth.backends.ModelBackend")
    typed = {"why": TYPED, "what": "did_not", "csrfmiddlewaretoken": "a" * 64}
    answer = client.post(f"/review/{item.pk}/reject/", typed, headers=headers)
    assert answer.status_code == 403
    assert SAYS in answer.content.decode()
    assert 'id="problem"' in answer.content.decode(), "which is all that is swapped in"
    assert not Decision.objects.exists()


def test_the_old_tab_says_so_keeps_what_was_typed_and_works_once_loaded_again(
    people: Cast,
    open_desk: OpenDesk,  # noqa: F811
) -> None:
    item = make.item_of(make.for_a_person(people.key))
    desk = open_desk()
    desk.open(f"/review/{item.pk}/")
    desk.sign_in("operator")
    old = desk.page
    old.get_by_role("link", name="Reject").click()
    old.get_by_label("It did not happen").check()
    old.get_by_label("Reason").fill(TYPED)

    desk.page = old.context.new_page()
    desk.open("/review/")
    desk.page.get_by_role("button", name="Sign out").click()
    expect(desk.page.get_by_label("Password")).to_be_visible()
    desk.sign_in("operator")
    expect(desk.page.get_by_role("button", name="Sign out")).to_be_visible()

    old.get_by_role("button", name="Reject").click()
    expect(old.locator("#decision #problem")).to_contain_text(SAYS)
    expect(old.locator("header.site-head")).to_have_count(1)
    assert not Decision.objects.exists()

    old.reload()
    expect(old.get_by_label("Reason")).to_have_value(TYPED)
    old.get_by_label("It did not happen").check()
    old.get_by_role("button", name="Reject").click()
    expect(old.get_by_role("heading", name="Recorded: Reject by operator")).to_be_visible()
    assert Decision.objects.get().why == TYPED
