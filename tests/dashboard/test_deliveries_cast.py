"""Who may open and press what of deliveries: every address against everybody."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from django.test import Client

from ledger.models import Delivery, Destination, DestinationChange, RedeliveryPlan, User
from ledger.transactions import database_clock
from review import deliveries
from review.queries.dead_letters import DeadFilter
from review.queries.destinations import newest_secret
from tests.dashboard.conftest import SignIn
from tests.support import make, told
from tests.support.cast import Cast

DELIVERY, DESTINATION, PLAN = "dlv_nothing", "dst_nothing", "pln_nothing"


@dataclass(frozen=True)
class Told:
    """A dead letter, a waiting delivery, their destination, and a plan of one."""

    dead: Delivery
    waiting: Delivery
    destination: Destination
    plan_id: str

    @property
    def pages(self) -> dict[str, str]:
        """Address → the same one of nothing known."""
        return {
            f"/deliveries/{self.dead.pk}/": f"/deliveries/{DELIVERY}/",
            f"/deliveries/{self.dead.pk}/redeliver/": f"/deliveries/{DELIVERY}/redeliver/",
            f"/destinations/{self.destination.pk}/": f"/destinations/{DESTINATION}/",
            f"/destinations/{self.destination.pk}/pause/": f"/destinations/{DESTINATION}/pause/",
            f"/dead-letters/redeliver/?destination={self.destination.pk}": (
                f"/dead-letters/redeliver/?destination={DESTINATION}"
            ),
            f"/redeliveries/{self.plan_id}/": f"/redeliveries/{PLAN}/",
            f"/operations/{self.dead.operation_id}/": "/operations/op_nothing/",
        }

    @property
    def decisions(self) -> dict[str, dict[str, str]]:
        """What needs the right to decide work, with what is typed."""
        return {
            f"/deliveries/{self.dead.pk}/redeliver/": {"why": "I am sure"},
            f"/deliveries/{self.waiting.pk}/dead-letter/": {"why": "I am sure"},
            f"/dead-letters/redeliver/?destination={self.destination.pk}": {
                "why": "I am sure",
                "rate_per_s": "5",
                "until": database_clock().isoformat(),
            },
            f"/redeliveries/{self.plan_id}/cancel/": {},
        }

    @property
    def administration(self) -> dict[str, dict[str, str]]:
        """What needs the right to administer."""
        here = f"/destinations/{self.destination.pk}"
        secret = newest_secret(self.destination.pk)
        return {
            f"{here}/pause/": {"why": "I am sure"},
            f"{here}/test/": {},
            f"{here}/rotate-secret/": {"overlap_h": "1", "replaces": secret},
        }


LISTS = ("/deliveries/", "/dead-letters/", "/destinations/", "/numbers/")


@pytest.fixture
def case(people: Cast) -> Told:
    destination = told.destination(people.tenant)
    dead = told.dead(make.confirmed(people.key), people.operator)
    plan_id = deliveries.plan_redelivery(
        people.operator,
        DeadFilter(destination.pk),
        until=database_clock(),
        why="they are back",
        rate_per_s=1.0,
    )
    waiting = told.delivery_of(make.confirmed(people.key))
    return Told(dead, waiting, destination, plan_id)


def state_of_everything() -> list[object]:
    return [
        list(Delivery.objects.order_by("pk").values_list("pk", "state", "tries_before")),
        DestinationChange.objects.count(),
        list(RedeliveryPlan.objects.values_list("pk", "cancelled_at")),
    ]


def everybody_who_sees(people: Cast) -> tuple[User, ...]:
    return (people.viewer, people.operator, people.approver, people.admin, people.auditor)


def test_whoever_sees_the_work_sees_its_deliveries(people: Cast, case: Told, signed_in: SignIn) -> None:
    for person in everybody_who_sees(people):
        client = signed_in(person)
        for path in (*LISTS, *case.pages):
            assert client.get(path).status_code == 200, (person.username, path)


def test_the_anonymous_are_sent_to_sign_in_and_change_nothing(case: Told) -> None:
    before = state_of_everything()
    for path in (*LISTS, *case.pages, "/destinations/add/"):
        answer = Client().get(path)
        assert answer.status_code == 303, path
        assert answer["Location"].startswith("/sign-in/"), path
    for path, typed in {**case.decisions, **case.administration}.items():
        assert Client().post(path, typed)["Location"].startswith("/sign-in/"), path
    assert state_of_everything() == before


def test_a_stranger_gets_the_404_of_what_does_not_exist(people: Cast, case: Told, signed_in: SignIn) -> None:
    before = state_of_everything()
    for person in (people.stranger, people.superuser):
        client = signed_in(person)
        for path, nowhere in case.pages.items():
            answer, unknown = client.get(path), client.get(nowhere)
            assert answer.status_code == unknown.status_code == 404, path
            assert without_ids(answer.content) == without_ids(unknown.content)
        for path, typed in {**case.decisions, **case.administration}.items():
            assert client.post(path, typed).status_code == 404, path
    assert signed_in(people.inactive).get("/deliveries/").status_code == 303
    assert state_of_everything() == before


def without_ids(body: bytes) -> list[str]:
    return [line for line in body.decode().splitlines() if "req_" not in line and "csrf" not in line]


def test_lists_show_nothing_of_another_tenant(people: Cast, case: Told, signed_in: SignIn) -> None:
    client = signed_in(people.stranger)
    for path in LISTS:
        body = client.get(path).content.decode()
        for secret in (case.dead.pk, case.destination.pk, "Invoice 7", told.ADDRESS, "books"):
            assert secret not in body, (path, secret)
    listed = client.get(f"/deliveries/?destination={case.destination.pk}").content.decode()
    assert case.dead.pk not in listed
    for path in LISTS:
        assert signed_in(people.superuser).get(path).status_code == 403


def test_who_may_not_decide_is_told_why_and_keeps_what_they_typed(
    people: Cast, case: Told, signed_in: SignIn
) -> None:
    before = state_of_everything()
    for person in people.not_deciding:
        client = signed_in(person)
        shown = client.get(f"/deliveries/{case.dead.pk}/").content.decode()
        assert "You need the right to decide work in Acme" in shown
        for path, typed in case.decisions.items():
            answer = client.post(path, typed)
            assert answer.status_code == 403, (person.username, path)
            assert b"decide work" in answer.content
            assert not typed or b"I am sure" in answer.content
            assert client.post(path).status_code == 403, path
    assert state_of_everything() == before


def test_who_does_not_administer_changes_no_destination(people: Cast, case: Told, signed_in: SignIn) -> None:
    before = state_of_everything()
    for person in (people.viewer, people.operator, people.approver, people.auditor):
        client = signed_in(person)
        body = client.get(f"/destinations/{case.destination.pk}/").content.decode()
        assert "You need the right to administer in Acme" in body
        for path, typed in case.administration.items():
            assert client.post(path, typed).status_code == 403, (person.username, path)
        assert client.get("/destinations/add/").status_code == 403
        assert client.post("/destinations/add/", new()).status_code == 403
    assert state_of_everything() == before


def new(**typed: str) -> dict[str, str]:
    return {"tenant": "acme", "name": "new", "url": told.ADDRESS, "ack": "response", **typed}


def test_an_administrator_adds_only_where_they_administer(
    people: Cast, case: Told, signed_in: SignIn
) -> None:
    client = signed_in(people.admin)
    assert client.post("/destinations/add/", new(tenant="globex")).status_code == 422
    assert client.post("/destinations/add/", new(name="books")).status_code == 422
    assert client.post("/destinations/add/", new(url="ftp://x")).status_code == 422
    assert client.post("/destinations/add/", new(tools="a\x01b")).status_code == 422
    assert Destination.objects.count() == 1
    answer = client.post("/destinations/add/", new(tools="refund.*\nmail.*"))
    assert answer.status_code == 200
    assert b"whsec_" in answer.content
    assert Destination.objects.get(name="new").tool_globs == ["refund.*", "mail.*"]


def test_who_decides_work_does_each_of_it(people: Cast, case: Told, signed_in: SignIn) -> None:
    client = signed_in(people.operator)
    for path, typed in reversed(case.decisions.items()):
        answer = client.post(path, typed)
        assert answer.status_code == 303, (path, answer.content.decode())


def test_who_administers_does_each_of_it(people: Cast, case: Told, signed_in: SignIn) -> None:
    client = signed_in(people.admin)
    here = f"/destinations/{case.destination.pk}"
    assert client.post(f"{here}/pause/", {"why": "they asked"}).status_code == 303
    assert client.post(f"{here}/pause/", {"why": "they asked"}).status_code == 409
    assert client.post(f"{here}/resume/", {"why": "back"}).status_code == 303
    body = client.get(f"{here}/").content.decode()
    for shown in ("they asked", "back", "Paused", "Resumed", "admin"):
        assert shown in body


def test_nothing_is_done_by_get_and_nothing_without_a_reason(
    people: Cast, case: Told, signed_in: SignIn
) -> None:
    before = state_of_everything()
    operator, admin = signed_in(people.operator), signed_in(people.admin)
    for path, typed in case.decisions.items():
        assert operator.get(path, typed).status_code in (200, 400, 405)
    for path, typed in case.administration.items():
        assert admin.get(path, typed).status_code == 200
    for path in (f"/deliveries/{case.dead.pk}/redeliver/", f"/deliveries/{case.waiting.pk}/dead-letter/"):
        answer = operator.post(path, {"why": " "})
        assert answer.status_code == 422
        assert b'role="alert"' in answer.content
    assert admin.post(f"/destinations/{case.destination.pk}/pause/").status_code == 422
    assert state_of_everything() == before


def test_an_unknown_press_is_nowhere(people: Cast, case: Told, signed_in: SignIn) -> None:
    client = signed_in(people.admin)
    for path in (f"/deliveries/{case.dead.pk}/run/", f"/destinations/{case.destination.pk}/delete/"):
        assert client.get(path).status_code == client.post(path).status_code == 404


def test_ids_that_cannot_be_are_nowhere(people: Cast, signed_in: SignIn) -> None:
    client = signed_in(people.operator)
    for bad in ("x", "%F0%9F%92%A5", "x" * 3000, "%27%22--"):
        for page in ("deliveries", "destinations", "redeliveries", "operations"):
            assert client.get(f"/{page}/{bad}/").status_code == 404, (page, bad)
    for bad in ("%00", "x" * 600):
        assert client.get(f"/dead-letters/redeliver/?destination={bad}").status_code == 400
        assert client.get(f"/deliveries/?destination={bad}").status_code == 400
    assert client.get("/deliveries/%00/").status_code == 400
    assert client.get("/deliveries/?tenant=%00").status_code == 400
