"""Who may open and press what: every address against everybody."""

from __future__ import annotations

import pytest
from django.test import Client

from ledger.models import Decision, ReviewItem
from ledger.rules.vocabulary import DecisionKind
from review.queries import item_page
from tests.dashboard.conftest import SignIn
from tests.support import make
from tests.support.cast import Cast

PUBLIC = ("/sign-in/", "/set-password/", "/problems/", "/problems/on-hold")
TYPED = {"why": "because", "reference": "res_9", "what": "not_known", "to": "operator", "typed": "{}"}


@pytest.fixture
def item(people: Cast) -> ReviewItem:
    return make.item_of(make.for_a_person(people.key))


def pages_of(item: ReviewItem) -> list[str]:
    return [f"/review/{item.pk}/", f"/review/{item.pk}/changed/", f"/review/{item.pk}/arguments/"]


def press(client: Client, item: ReviewItem, decision: str, **typed: str) -> int:
    return client.post(f"/review/{item.pk}/{decision}/", {**TYPED, **typed}).status_code


@pytest.mark.parametrize("path", PUBLIC)
def test_anybody_opens_the_public_pages(db: None, path: str) -> None:
    assert Client().get(path).status_code == 200


def test_a_stranger_to_the_system_is_sent_to_sign_in_and_back(item: ReviewItem) -> None:
    for path in ["/", "/help/", "/review/", "/review/strip/", *pages_of(item), f"/review/{item.pk}/reject/"]:
        answer = Client().get(path)
        assert (answer.status_code, answer["Location"]) == (303, f"/sign-in/?next={path.replace('/', '%2F')}")


def test_an_anonymous_press_decides_nothing(item: ReviewItem) -> None:
    assert press(Client(), item, "reject") == 303
    assert not Decision.objects.exists()


def test_people_without_any_right_get_the_404_of_an_unknown_item(
    people: Cast, item: ReviewItem, signed_in: SignIn
) -> None:
    for person in (people.stranger, people.superuser):
        client = signed_in(person)
        unknown = client.get("/review/rev_00000000000000000000000000/")
        for path in pages_of(item):
            answer = client.get(path)
            assert answer.status_code == unknown.status_code == 404
            assert without_ids(answer.content) == without_ids(unknown.content)
        assert press(client, item, "reject") == 404
    assert not Decision.objects.exists()


def without_ids(body: bytes) -> list[str]:
    """The page without its request id and its form's secret, which differ on every page."""
    return [line for line in body.decode().splitlines() if "req_" not in line and "csrf" not in line]


def test_who_sees_no_tenant_learns_which_right_is_missing(people: Cast, signed_in: SignIn) -> None:
    answer = signed_in(people.superuser).get("/review/")
    assert answer.status_code == 403
    assert b"view work" in answer.content
    assert b"administrators of the tenant" in answer.content


def test_who_may_not_decide_sees_why_on_every_button_and_is_refused(
    people: Cast, item: ReviewItem, signed_in: SignIn
) -> None:
    for person in people.not_deciding:
        client = signed_in(person)
        shown = client.get(f"/review/{item.pk}/")
        assert shown.status_code == 200
        assert b"You need the right to decide work in Acme" in shown.content
        for decision in (
            "approve",
            "reject",
            "confirm-happened",
            "confirm-did-not-happen",
            "recheck",
            "claim",
        ):
            assert press(client, item, decision, shown_digest="v1:sha256:0") == 403, decision
    assert not Decision.objects.exists()


def test_a_refused_press_names_the_right_and_who_grants_it(
    people: Cast, item: ReviewItem, signed_in: SignIn
) -> None:
    answer = signed_in(people.viewer).post(f"/review/{item.pk}/reject/", {**TYPED, "why": "I am quite sure"})
    assert answer.status_code == 403
    body = answer.content.decode()
    assert "decide work" in body
    assert "admin" in body
    assert "I am quite sure" in body


def test_every_button_an_operator_may_press_is_a_link_or_a_form(
    people: Cast, item: ReviewItem, signed_in: SignIn
) -> None:
    body = signed_in(people.operator).get(f"/review/{item.pk}/").content.decode()
    for action in item_page(people.operator, item.pk).actions:
        address = f"/review/{item.pk}/{action.kind.value.replace('_', '-')}/"
        assert (address in body) == action.enabled, action


def test_nothing_is_decided_by_get(people: Cast, item: ReviewItem, signed_in: SignIn) -> None:
    client = signed_in(people.operator)
    for kind in DecisionKind:
        answer = client.get(f"/review/{item.pk}/{kind.value.replace('_', '-')}/", TYPED)
        assert answer.status_code in (200, 303), kind
    assert not Decision.objects.exists()


def test_a_press_without_the_secret_of_the_form_is_a_readable_refusal(
    people: Cast, item: ReviewItem, signed_in: SignIn
) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(people.operator, backend="django.contrib.auth.backends.ModelBackend")
    answer = client.post(f"/review/{item.pk}/reject/", TYPED)
    assert answer.status_code == 403
    assert b"too old or came from elsewhere" in answer.content
    assert not Decision.objects.exists()


def test_somebody_switched_off_is_signed_out(people: Cast, item: ReviewItem, signed_in: SignIn) -> None:
    assert signed_in(people.inactive).get(f"/review/{item.pk}/").status_code == 303
