"""Parked facts as people see them, and who may say what about them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from ledger import lifecycle
from ledger.lifecycle import OutcomeReport, Told
from ledger.models import ApiKey, ParkedFact, ParkedNote
from ledger.models.ids import attempt_id
from ledger.queries.invariants import findings
from ledger.rules import parking
from ledger.rules.looked_up import LookedUpKind
from ledger.transactions import durable
from review.queries import parked as parked_queries
from tests.dashboard.conftest import SignIn, body_of
from tests.support import make
from tests.support.cast import Cast

SECRET = str(make.ARGS[make.TICKET]["title"])
HOSTILE = "<script>alert(1)</script>\u202e"


def tell(by: ApiKey, *, about: str = "", key: str = "", **report: Any) -> ParkedFact:
    said = OutcomeReport(**{"worker_id": "worker-1", "outcome": "succeeded", "result_ref": "res_9", **report})
    durable(lambda: lifecycle.take_outcome(key=by, told=Told(about, key), report=said))
    return ParkedFact.objects.latest("parked_at")


@pytest.fixture
def fact(people: Cast) -> ParkedFact:
    return tell(people.key, key="invoice:lost")


def address(fact: ParkedFact, what: str = "") -> str:
    return f"/review/parked/{fact.pk}/" + (f"{what}/" if what else "")


def test_the_list_says_what_was_told_about_what_by_whom_and_how_often(
    people: Cast, fact: ParkedFact, signed_in: SignIn
) -> None:
    tell(people.key, key="invoice:lost")
    lost = attempt_id()
    tell(people.key, about=lost, outcome="unknown", result_ref="")
    for person in (people.operator, people.viewer, people.auditor, people.admin):
        body = body_of(signed_in(person), "/review/parked/")
        for shown in ("invoice:", "lost", "res_9", "billing-bot", "told 2 times", lost, "Acme"):
            assert shown in body, shown
    assert 'Parked facts <span class="count">2</span>' in body_of(signed_in(people.viewer), "/review/")


def test_the_empty_list_says_so(people: Cast, signed_in: SignIn) -> None:
    assert "Every report has found its attempt" in body_of(signed_in(people.operator), "/review/parked/")
    assert "Nothing was dismissed" in body_of(signed_in(people.operator), "/review/parked/?show=dismissed")


def test_who_may_not_know_of_it_gets_the_404_of_an_unknown_one(
    people: Cast, fact: ParkedFact, signed_in: SignIn
) -> None:
    stranger = signed_in(people.stranger)
    assert "invoice:" not in body_of(stranger, "/review/parked/")
    assert signed_in(people.superuser).get("/review/parked/").status_code == 403
    for client in (stranger, signed_in(people.superuser)):
        for path in (address(fact), "/review/parked/fct_nothing/"):
            assert client.get(path).status_code == 404
        for what in ("note", "dismiss"):
            assert client.post(address(fact, what), {f"{what}-why": "x"}).status_code == 404
    for path in ("/review/parked/", address(fact)):
        assert Client().get(path)["Location"].startswith("/sign-in/")
    assert not ParkedNote.objects.exists()


def test_who_may_not_decide_says_nothing_about_it(people: Cast, fact: ParkedFact, signed_in: SignIn) -> None:
    for person in people.not_deciding:
        client = signed_in(person)
        assert "You need the right to decide work in Acme" in body_of(client, address(fact))
        for what in ("note", "dismiss"):
            refused = client.post(address(fact, what), {f"{what}-why": "I am sure"})
            assert refused.status_code == 403
            assert b"I am sure" in refused.content
            assert client.post(address(fact, what)).status_code == 403
    assert not ParkedNote.objects.exists()


def test_a_note_is_kept_with_name_and_time(people: Cast, fact: ParkedFact, signed_in: SignIn) -> None:
    client = signed_in(people.operator)
    assert client.post(address(fact, "note"), {"note-why": "asked the bank"}).status_code == 303
    body = body_of(client, address(fact))
    assert "asked the bank" in body
    assert "operator" in body
    assert "1 note" in body_of(client, "/review/parked/")


def test_a_dismissed_fact_leaves_the_list_and_is_lost_to_nobody(
    people: Cast, fact: ParkedFact, signed_in: SignIn
) -> None:
    client = signed_in(people.operator)
    assert client.post(address(fact, "dismiss"), {"dismiss-why": "a test of theirs"}).status_code == 303
    assert "invoice:" not in body_of(client, "/review/parked/")
    assert "invoice:" in body_of(client, "/review/parked/?show=dismissed")
    assert "a test of theirs" in body_of(client, address(fact))
    again = signed_in(people.approver).post(address(fact, "dismiss"), {"dismiss-why": "so think I"})
    assert again.status_code == 409
    assert b"Somebody has dismissed it already" in again.content
    attempt = make.fresh(make.recorded(people.key, operation_key="invoice:lost"))
    assert attempt.reason == "sent_without_leave"
    assert "It found its attempt" in body_of(client, address(fact))
    assert list(findings()) == []


def test_a_press_without_a_reason_says_nothing(people: Cast, fact: ParkedFact, signed_in: SignIn) -> None:
    client = signed_in(people.operator)
    for what in ("note", "dismiss"):
        answer = client.post(address(fact, what), {f"{what}-why": " "})
        assert answer.status_code == 422
        assert b'role="alert"' in answer.content
        assert client.get(address(fact, what)).status_code == 405
    assert not ParkedNote.objects.exists()


def test_words_of_agents_are_inert_and_marked(people: Cast, signed_in: SignIn) -> None:
    fact = tell(people.key, key="k", outcome="failed", result_ref="", error_class="unknown", message=HOSTILE)
    body = body_of(signed_in(people.operator), address(fact))
    assert "<script>alert" not in body
    assert "U+202E" in body


def test_candidates_are_hints_with_their_reason_and_masked(people: Cast, signed_in: SignIn) -> None:
    tools = {**make.TOOLS, make.TICKET: {**make.TOOLS[make.TICKET], "mask": ["/title"]}}
    make.policy(people.tenant, tools=tools)
    same = make.looked_up(make.unknown(people.key, make.TICKET), LookedUpKind.NO_LOOKUP)
    foreign = make.key(make.agent(people.other_tenant, people.stranger))
    make.unknown(foreign, make.TICKET, operation_key="foreign:key")
    fact = tell(people.key, key="lost", args_hash=same.args_hash)
    body = body_of(signed_in(people.operator), address(fact))
    assert "the same arguments and sent by the same agent around that time" in body
    assert f"/review/{make.item_of(same).pk}/" in body
    assert "Printer on fire" not in body
    assert "foreign:" not in body


def test_a_value_hidden_since_is_hidden_from_a_fact_and_its_candidates(
    people: Cast, signed_in: SignIn
) -> None:
    """The newest mask holds for older work, and for what was told about it before it was known."""
    same = make.looked_up(make.unknown(people.key, make.TICKET), LookedUpKind.NO_LOOKUP)
    lost = tell(people.key, key="lost", args_hash=same.args_hash)
    joined = tell(people.key, key="found", outcome="failed", error_class="unknown", message=f"No {SECRET}!")
    make.recorded(people.key, make.TICKET, operation_key="found")
    client = signed_in(people.viewer)
    assert all(SECRET in body_of(client, address(fact)) for fact in (lost, joined))
    tools = {**make.TOOLS, make.TICKET: {**make.TOOLS[make.TICKET], "mask": ["/title"]}}
    make.policy(people.tenant, by=people.admin, tools=tools)
    for fact, said in ((lost, "Open a ticket: [title masked]"), (joined, "No [masked]!")):
        body = body_of(client, address(fact))
        assert SECRET not in body
        assert said in body


def test_people_are_told_before_there_is_no_room(
    people: Cast, fact: ParkedFact, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = signed_in(people.operator)
    assert "of the room" not in body_of(client, "/review/parked/")
    monkeypatch.setattr(parking, "MOST_FACTS", 1)
    body = body_of(client, "/review/parked/")
    assert "Acme: 100 % of the room for parked facts is used." in body
    assert "Further facts are sent back" in body


def test_the_list_goes_on_over_pages(
    people: Cast, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parked_queries, "PAGE_SIZE", 2)
    facts = [tell(people.key, key=f"lost-{number}") for number in range(3)]
    client = signed_in(people.operator)
    first = client.get("/review/parked/")
    (more,) = [part for part in first.content.decode().split('"') if "cursor=" in part]
    second = client.get("/review/parked/" + more.replace("&amp;", "&"))
    listed = [[f.pk for f in facts if f.pk in page.content.decode()] for page in (first, second)]
    assert listed == [[facts[0].pk, facts[1].pk], [facts[2].pk]]
    assert client.get("/review/parked/?cursor=nonsense").status_code == 400
    assert client.get("/review/parked/?show=nonsense").status_code == 400
