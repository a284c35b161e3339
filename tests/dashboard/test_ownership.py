"""Pages of ownership: what everybody may open and press, drafts without scripts, many items at once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from ledger.models import Decision, ReviewGroup, ReviewItem
from ledger.rules.vocabulary import DecisionKind
from review import ownership
from review.models import OwnershipEntry, OwnershipVersion, TeamChange
from review.ownership_rules import TypedRule
from tests.dashboard.conftest import SignIn, body_of
from tests.review.teams import in_force, team
from tests.support import make
from tests.support.cast import Cast

EDIT, APPLY = "/ownership/acme/edit/", "/ownership/acme/apply/"
ONE_RULE = {"tool": ["*"], "reason": [""], "effect": [""], "owner": ["operator"], "based_on": "0"}
SAVE = {**ONE_RULE, "press": "save", "reach": "all", "why": "as agreed"}


@pytest.fixture
def item(people: Cast) -> ReviewItem:
    return make.item_of(make.unknown(people.key))


@pytest.fixture
def payments(people: Cast) -> ReviewGroup:
    return team(people, "Payments", people.operator)


def nothing_changed() -> bool:
    changes = TeamChange.objects.exclude(team__name="Payments")
    return not (OwnershipVersion.objects.exists() or Decision.objects.exists() or changes.exists())


class TestCast:
    def presses(self, payments: ReviewGroup) -> dict[str, Mapping[str, object]]:
        return {
            EDIT: SAVE,
            APPLY: {"reach": "all"},
            "/teams/add/": {"tenant": "acme", "name": "Legal"},
            f"/teams/{payments.pk}/rename/": {"name": "Legal"},
            f"/teams/{payments.pk}/add/": {"username": "approver"},
            f"/teams/{payments.pk}/remove/": {"username": "operator"},
        }

    def pages(self, payments: ReviewGroup) -> list[str]:
        return ["/ownership/", "/ownership/?tenant=acme", "/teams/", f"/teams/{payments.pk}/"]

    def test_whoever_sees_the_work_sees_whose_it_is(
        self, people: Cast, payments: ReviewGroup, signed_in: SignIn
    ) -> None:
        for person in (people.viewer, people.operator, people.approver, people.admin, people.auditor):
            for path in self.pages(payments):
                assert signed_in(person).get(path).status_code == 200, (person.username, path)

    @pytest.mark.usefixtures("item")
    def test_only_who_administers_changes_it(
        self, people: Cast, payments: ReviewGroup, signed_in: SignIn
    ) -> None:
        for person in (people.viewer, people.operator, people.approver, people.auditor):
            for path, typed in self.presses(payments).items():
                answer = signed_in(person).post(path, typed)
                # the form of a new team offers only tenants one may see, and review refuses the rest
                assert answer.status_code == 403, (person.username, path)
                assert "administer in Acme" in answer.content.decode()
            assert signed_in(person).get(EDIT).status_code == 403
        assert nothing_changed()

    @pytest.mark.usefixtures("item")
    def test_who_must_not_know_gets_the_404_of_nothing(
        self, people: Cast, payments: ReviewGroup, signed_in: SignIn
    ) -> None:
        client = signed_in(people.stranger)
        for path in ("/ownership/?tenant=acme", f"/teams/{payments.pk}/", EDIT):
            assert client.get(path).status_code == 404, path
        for path, typed in self.presses(payments).items():
            assert client.post(path, typed).status_code in (404, 422), path
        assert "Payments" not in body_of(client, "/teams/")
        assert "Acme" not in body_of(client, "/ownership/")
        for path in self.pages(payments):
            assert signed_in(people.superuser).get(path).status_code in (403, 404), path
        assert nothing_changed()

    def test_the_anonymous_and_the_inactive_are_sent_to_sign_in(
        self, people: Cast, payments: ReviewGroup, item: ReviewItem, signed_in: SignIn
    ) -> None:
        presses = {**self.presses(payments), "/review/many/claim/": {"item": [item.pk]}}
        for client in (Client(), signed_in(people.inactive)):
            for path in (*self.pages(payments), EDIT):
                assert client.get(path)["Location"].startswith("/sign-in/"), path
            for path, typed in presses.items():
                assert client.post(path, typed)["Location"].startswith("/sign-in/"), path
        assert nothing_changed()


def test_a_rule_of_dead_letters_is_typed_tried_and_saved(people: Cast, signed_in: SignIn) -> None:
    client = signed_in(people.admin)
    rule = {
        "tool": ["*"],
        "reason": [""],
        "effect": [""],
        "owner": ["#Review desk"],
        "destination": ["books*"],
    }
    typed = {**rule, "based_on": "0"}
    wrong = client.post(EDIT, {**typed, "owner": ["operator"], "press": "dry-run"})
    assert wrong.status_code == 422
    assert "Dead letters are a team" in wrong.content.decode()
    tried = client.post(EDIT, {**typed, "press": "dry-run"})
    assert "dead letters to <code>books*</code>" in tried.content.decode()
    saved = client.post(EDIT, {**typed, "press": "save", "reach": "new", "why": "as agreed"})
    assert saved.status_code == 303
    assert "dead letters to <code>books*</code>" in body_of(client, "/ownership/?tenant=acme")
    assert 'value="books*"' in body_of(client, EDIT)


class TestDraft:
    def draft(self, press: str, *owners: str, **more: object) -> dict[str, object]:
        return {
            "tool": [f"tool-{n}.*" for n in range(len(owners))],
            "reason": [""] * len(owners),
            "effect": [""] * len(owners),
            "owner": list(owners),
            "based_on": "0",
            "press": press,
            **more,
        }

    @pytest.mark.parametrize(
        ("press", "order"),
        [
            ("up-2", ["approver", "operator"]),
            ("down-1", ["approver", "operator"]),
            ("up-1", ["operator", "approver"]),
            ("down-2", ["operator", "approver"]),
            ("remove-1", ["approver"]),
            ("remove-9", ["operator", "approver"]),
            ("remove-x", ["operator", "approver"]),
            ("edit", ["operator", "approver"]),
            ("add", ["operator", "approver", ""]),
        ],
    )
    def test_it_is_rearranged_and_nothing_is_saved(
        self, people: Cast, signed_in: SignIn, press: str, order: list[str]
    ) -> None:
        answer = signed_in(people.admin).post(EDIT, self.draft(press, "operator", "approver"))
        assert answer.status_code == 200
        assert [row.rule.owner for row in answer.context["rows"]] == order
        assert nothing_changed()

    def test_what_cannot_be_is_said_beside_its_rule(self, people: Cast, signed_in: SignIn) -> None:
        answer = signed_in(people.admin).post(EDIT, self.draft("dry-run", "operator", "stranger"))
        assert answer.status_code == 422
        body = " ".join(answer.content.decode().split())
        assert "stranger cannot own work of Acme" in body
        assert 'aria-describedby="wrong-2"' in body
        assert nothing_changed()

    def test_it_is_tried_then_saved_and_applied(
        self, people: Cast, item: ReviewItem, signed_in: SignIn
    ) -> None:
        client = signed_in(people.admin)
        tried = client.post(EDIT, {**ONE_RULE, "press": "dry-run"})
        body = " ".join(tried.content.decode().split())
        assert "1 of 1 open item would change owner" in body
        assert nothing_changed()
        missing = client.post(EDIT, {**SAVE, "why": ""})
        assert missing.status_code == 422
        assert nothing_changed()
        saved = client.post(EDIT, SAVE)
        assert "Saved as version 1. 1 of 1 open item moved" in " ".join(saved.content.decode().split())
        item.refresh_from_db()
        assert item.owner == people.operator
        assert Decision.objects.get().why == "as agreed"

    @pytest.mark.usefixtures("item")
    def test_saved_for_new_ones_it_leads_back_and_moves_nothing(
        self, people: Cast, signed_in: SignIn
    ) -> None:
        answer = signed_in(people.admin).post(EDIT, {**SAVE, "reach": "new"})
        assert (answer.status_code, answer["Location"]) == (303, "/ownership/?tenant=acme")
        assert OwnershipVersion.objects.get().reach == "new"
        assert not Decision.objects.exists()

    def test_who_was_not_first_keeps_the_draft_and_learns_who_was(
        self, people: Cast, signed_in: SignIn
    ) -> None:
        in_force(people, TypedRule("refund.*", owner="approver"))
        answer = signed_in(people.admin).post(EDIT, SAVE)
        assert answer.status_code == 409
        body = " ".join(answer.content.decode().split())
        assert "admin saved version 1 meanwhile" in body
        assert [row.rule.owner for row in answer.context["rows"]] == ["operator"]
        assert 'name="based_on" value="1"' in body
        assert OwnershipEntry.objects.get().tool_glob == "refund.*"

    @pytest.mark.parametrize("version", ["9", "x", "-1", "1" * 40, "%00"])
    def test_a_version_there_is_not(self, people: Cast, signed_in: SignIn, version: str) -> None:
        answer = signed_in(people.admin).get(f"/ownership/?tenant=acme&version={version}")
        assert answer.status_code in (400, 404)

    def test_hostile_forms_are_refused(self, people: Cast, signed_in: SignIn) -> None:
        client = signed_in(people.admin)
        for typed in (
            {"press": "save"},
            {
                **SAVE,
                "tool": ["*"] * 60,
                "reason": [""] * 60,
                "effect": [""] * 60,
                "owner": ["operator"] * 60,
            },
            {**SAVE, "tool": ["a\x00b"]},
            {**SAVE, "owner": ["#\x00"]},
            {**SAVE, "reach": "everything"},
            {**SAVE, "based_on": "9" * 30},
        ):
            assert client.post(EDIT, typed).status_code in (200, 409, 422), typed
        assert client.post("/ownership/acme/apply/", {"reach": "\x00"}).status_code == 303
        assert nothing_changed()


class TestTeams:
    def test_it_is_made_filled_and_renamed(self, people: Cast, signed_in: SignIn) -> None:
        client = signed_in(people.admin)
        address = client.post("/teams/add/", {"tenant": "acme", "name": "Payments"})["Location"]
        assert client.post(f"{address}add/", {"username": "operator"}).status_code == 303
        assert client.post(f"{address}rename/", {"name": "Refunds"}).status_code == 303
        body = body_of(client, address)
        assert "renamed from “Payments” to “Refunds”" in body
        assert "operator added" in body

    def test_what_is_refused_is_said(self, people: Cast, payments: ReviewGroup, signed_in: SignIn) -> None:
        client = signed_in(people.admin)
        taken = client.post("/teams/add/", {"tenant": "acme", "name": "Payments"})
        assert (taken.status_code, b"There is a team Payments already" in taken.content) == (422, True)
        joined = client.post(f"/teams/{payments.pk}/add/", {"username": "operator"})
        assert (joined.status_code, b"is a member already" in joined.content) == (422, True)
        gone = client.post(f"/teams/{payments.pk}/remove/", {"username": "nobody\x00"})
        assert gone.status_code in (409, 422)
        assert client.post(f"/teams/{payments.pk}/burn/").status_code == 404


class TestMany:
    def test_each_is_claimed_or_its_refusal_shown(self, people: Cast, signed_in: SignIn) -> None:
        free, held = (make.item_of(make.unknown(people.key)) for _ in range(2))
        ownership.claim(people.second_operator, held.pk)
        typed = {"item": [free.pk, held.pk, "rev_nothing", free.pk]}
        answer = signed_in(people.operator).post("/review/many/claim/?tab=all", typed)
        body = " ".join(answer.content.decode().split())
        assert "Claim: 1 of 3 done" in body
        assert "second-operator has claimed this item" in body
        assert "There is no such item." in body
        assert 'href="/review/?tab=all"' in body
        assert Decision.objects.filter(kind=DecisionKind.CLAIM, by=people.operator).count() == 1

    @pytest.mark.parametrize("kind", ["claim", "assign", "snooze"])
    def test_nothing_ticked_is_refused(self, people: Cast, signed_in: SignIn, kind: str) -> None:
        answer = signed_in(people.operator).post(
            f"/review/many/{kind}/", {"why": "x", "lasts": "1", "to": "operator"}
        )
        assert (answer.status_code, b"nothing is ticked" in answer.content) == (422, True)

    def test_more_than_a_page_is_refused(self, people: Cast, signed_in: SignIn) -> None:
        typed = {"item": ["a\x00b", *(f"rev_{number}" for number in range(51))]}
        answer = signed_in(people.operator).post("/review/many/claim/", typed)
        assert (answer.status_code, b"At most 50 items" in answer.content) == (422, True)

    def test_assigning_asks_to_whom_and_why_first(
        self, people: Cast, payments: ReviewGroup, item: ReviewItem, signed_in: SignIn
    ) -> None:
        client = signed_in(people.admin)
        asked = client.post("/review/many/assign/", {"item": [item.pk]})
        assert (asked.status_code, b"Mail Invoice 7" in asked.content) == (200, True)
        assert (
            client.post("/review/many/assign/", {"item": [item.pk], "why": "", "to": ""}).status_code == 422
        )
        assert not Decision.objects.exists()
        client.post("/review/many/assign/", {"item": [item.pk], "why": "yours", "to": "#Payments"})
        item.refresh_from_db()
        assert item.owner_group == payments

    def test_snoozing_until_a_time(self, people: Cast, item: ReviewItem, signed_in: SignIn) -> None:
        client = signed_in(people.operator)
        typed = {"item": [item.pk], "why": "they open at nine", "lasts": "until"}
        assert client.post("/review/many/snooze/", typed).status_code == 422
        past = client.post("/review/many/snooze/", {**typed, "until": "2020-01-01T09:00"})
        assert "Snooze: 0 of 1 done" in " ".join(past.content.decode().split())
        until = (item.opened_at + timedelta(days=2)).replace(second=0, microsecond=0)
        client.post("/review/many/snooze/", {**typed, "until": until.strftime("%Y-%m-%dT%H:%M")})
        item.refresh_from_db()
        assert item.snoozed_until == until

    def test_who_may_not_is_told_for_each(self, people: Cast, item: ReviewItem, signed_in: SignIn) -> None:
        for person in (people.viewer, people.auditor, people.admin):
            answer = signed_in(person).post("/review/many/claim/", {"item": [item.pk]})
            assert b"You need the right to decide work in Acme" in answer.content
        for person in (people.stranger, people.superuser):
            answer = signed_in(person).post("/review/many/claim/", {"item": [item.pk]})
            assert b"There is no such item" in answer.content
            assert b"Mail Invoice" not in answer.content
        assert not Decision.objects.exists()

    @pytest.mark.usefixtures("item")
    def test_only_who_may_act_is_offered_it(self, people: Cast, signed_in: SignIn) -> None:
        for person, offered in ((people.operator, True), (people.admin, True), (people.viewer, False)):
            assert ('name="item"' in body_of(signed_in(person), "/review/")) == offered

    def test_a_get_and_an_unknown_press_do_nothing(
        self, people: Cast, item: ReviewItem, signed_in: SignIn
    ) -> None:
        client = signed_in(people.operator)
        assert client.get(f"/review/many/claim/?item={item.pk}").status_code == 303
        assert client.post("/review/many/approve/", {"item": [item.pk]}).status_code == 404
        assert not Decision.objects.exists()


class TestItem:
    def test_what_it_waits_on_stands_on_page_and_row(
        self, people: Cast, item: ReviewItem, signed_in: SignIn
    ) -> None:
        client = signed_in(people.operator)
        typed = {"what": "their <support>", "url": "https://support.example/t/7"}
        assert client.post(f"/review/{item.pk}/wait-on/", typed).status_code == 303
        for path in (f"/review/{item.pk}/", "/review/"):
            body = body_of(client, path)
            assert 'href="https://support.example/t/7" rel="noopener noreferrer"' in body
            assert "their &lt;support&gt;" in body

    @pytest.mark.parametrize("url", ["http://x.example", "javascript:alert(1)", "https://u:p@x.example/"])
    def test_an_address_that_is_not_plain_https_is_refused_beside_its_field(
        self, people: Cast, item: ReviewItem, signed_in: SignIn, url: str
    ) -> None:
        answer = signed_in(people.operator).post(f"/review/{item.pk}/wait-on/", {"what": "them", "url": url})
        assert (answer.status_code, b"This address cannot be shown" in answer.content) == (422, True)

    def test_a_snoozed_one_says_until_when_and_is_woken(
        self, people: Cast, item: ReviewItem, signed_in: SignIn
    ) -> None:
        client = signed_in(people.operator)
        client.post(f"/review/{item.pk}/snooze/", {"lasts": "4", "why": "later"})
        assert "snoozed, wakes" in body_of(client, f"/review/{item.pk}/")
        assert "snoozed, wakes" in body_of(client, "/review/?tab=snoozed")
        client.post(f"/review/{item.pk}/wake/")
        assert "snoozed, wakes" not in body_of(client, f"/review/{item.pk}/")

    def test_a_colleague_reads_the_note(self, people: Cast, item: ReviewItem, signed_in: SignIn) -> None:
        ownership.claim(people.operator, item.pk)
        typed = {"to": "approver", "why": "they call back at nine"}
        assert signed_in(people.operator).post(f"/review/{item.pk}/hand-over/", typed).status_code == 303
        body = body_of(signed_in(people.approver), f"/review/{item.pk}/")
        assert "approver (me), Review desk; claimed by me" in body
        assert "they call back at nine" in body


def test_the_queries_of_the_pages(people: Cast, signed_in: SignIn) -> None:
    item = make.item_of(make.unknown(people.key))
    client = signed_in(people.operator)
    for path, most in (("/review/", 16), (f"/review/{item.pk}/", 23)):
        with CaptureQueriesContext(connection) as captured:
            assert client.get(path).status_code == 200
        assert len(captured) <= most, (path, len(captured))
