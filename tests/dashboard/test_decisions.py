"""Presses: what is recorded, what is refused, and what a person sees of it."""

from __future__ import annotations

import json
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client

from ledger.approvals import binding_of
from ledger.authority import key_window_of
from ledger.models import Decision, ReviewItem, Vote
from ledger.policies import rule_of
from ledger.rules.states import State
from ledger.rules.vocabulary import DecisionKind
from ledger.transactions import database_clock
from review import decisions
from review.queries import item_page
from tests.dashboard.conftest import SignIn, body_of
from tests.support import make
from tests.support.cast import Cast


def press(client: Client, item: ReviewItem, decision: str, *, htmx: bool = False, **typed: Any) -> Any:
    headers = {"HX-Request": "true"} if htmx else {}
    return client.post(f"/review/{item.pk}/{decision}/?tab=all", typed, headers=headers)


def in_review(people: Cast) -> ReviewItem:
    return make.item_of(make.for_a_person(people.key))


def state_of(item: ReviewItem) -> str:
    return make.fresh(item.attempt).state


def test_confirming_is_answered_with_state_event_and_hash(people: Cast, signed_in: SignIn) -> None:
    item, client = in_review(people), signed_in(people.operator)
    other = in_review(people)
    answer = press(client, item, "confirm-happened", why="seen in their console", reference="tkt_7")
    assert answer.status_code == 303
    assert state_of(item) == State.OUTCOME_CONFIRMED
    body = client.get(answer["Location"]).content.decode()
    assert "Recorded: Confirm it happened by operator" in body
    event = item.operation.events.order_by("sequence").get(kind="review.decided")
    assert f"event {event.sequence}" in body
    assert event.hash[-8:] in body
    assert f"/review/{other.pk}/?tab=all" in body


def test_with_htmx_the_answer_is_a_page_to_go_to(people: Cast, signed_in: SignIn) -> None:
    answer = press(
        signed_in(people.operator), in_review(people), "reject", htmx=True, why="no", what="not_known"
    )
    assert answer.status_code == 200
    assert "answer=" in answer["HX-Redirect"]


def test_a_decision_wants_a_reason(people: Cast, signed_in: SignIn) -> None:
    item = in_review(people)
    answer = press(signed_in(people.operator), item, "confirm-happened", why="  ", reference="tkt_7")
    assert answer.status_code == 422
    body = answer.content.decode()
    assert "Type a reason" in body
    assert 'value="tkt_7"' in body
    assert not Decision.objects.exists()


def test_rejecting_what_was_sent_asks_what_became_of_it(people: Cast, signed_in: SignIn) -> None:
    item, client = in_review(people), signed_in(people.operator)
    assert press(client, item, "reject", why="no").status_code == 422
    assert press(client, item, "reject", why="no", what="did_not").status_code == 303
    assert state_of(item) == State.FAILED


def test_approving_shows_what_it_binds_and_counts_one_person_once(people: Cast, signed_in: SignIn) -> None:
    item, client = make.item_of(make.held(people.key)), signed_in(people.approver)
    form = client.get(f"/review/{item.pk}/approve/").content.decode()
    ballot = item_page(people.approver, item.pk).ballot
    assert ballot is not None
    assert ballot.digest in form
    assert "new_provider_key" not in form  # nothing was sent that a new key could double
    answer = press(client, item, "approve", why="planned", shown_digest=ballot.digest)
    assert answer.status_code == 303
    assert Vote.objects.get().meaning == ballot.meaning
    assert state_of(item) == State.INTENT_RECORDED


def two_for_a_deployment(people: Cast) -> None:
    two = {**make.TOOLS[make.DEPLOY], "approvals": 2}
    make.policy(people.tenant, by=people.admin, tools={**make.TOOLS, make.DEPLOY: two})


def test_after_each_yes_the_page_says_who_must_act_now(people: Cast, signed_in: SignIn) -> None:
    two_for_a_deployment(people)
    item = make.item_of(make.held(people.key))
    waits = ("Waits for a second approval", "(second-approver can)", "approver’s yes ends")
    approved = ("Approved by approver and second-approver (2 of 2)", "until the agent asks")
    for person, said in ((people.approver, waits), (people.second_approver, approved)):
        client = signed_in(person)
        ballot = item_page(person, item.pk).ballot
        assert ballot is not None
        answer = press(client, item, "approve", why="planned", shown_digest=ballot.digest)
        body = " ".join(client.get(answer["Location"]).content.decode().split())
        for words in said:
            assert body.count(words) == 3, words  # in the answer, in the head, in the box of the votes
        assert "Who could add a yes now" not in body
        assert (b"1 of 2 approvals" in client.get("/review/").content) is (said == waits)
    body = signed_in(people.approver).get(f"/review/{item.pk}/").content.decode()
    assert "approving again replaces that approval" in body


def test_an_approval_that_covers_nothing_any_more_asks_for_another(people: Cast, signed_in: SignIn) -> None:
    item = make.item_of(make.held(people.key))
    decisions.approve(people.approver, item.pk, why="go")
    two_for_a_deployment(people)
    body = signed_in(people.approver).get(f"/review/{item.pk}/").content.decode()
    said = "The approval of approver no longer covers this send (approval-stale): approve again."
    assert body.count(said) == 3  # in the head, beside the button, in the box of the votes
    assert "until the agent asks" not in body


def test_a_new_provider_key_is_offered_only_where_keys_are_kept(people: Cast, signed_in: SignIn) -> None:
    client = signed_in(people.approver)
    kept, unkept = make.item_of(make.unknown(people.key)), in_review(people)
    assert "new_provider_key" in client.get(f"/review/{kept.pk}/approve/").content.decode()
    assert "new_provider_key" not in client.get(f"/review/{unkept.pk}/approve/").content.decode()


@pytest.mark.parametrize(
    ("new_key", "said"),
    [
        (True, "1 so far, with a new provider key: a yes without it takes that back."),
        (False, "1 so far, without a new provider key: a yes with it takes that back."),
    ],
    ids=["with", "without"],
)
def test_before_the_press_the_form_says_for_which_key_the_round_is(
    people: Cast, signed_in: SignIn, new_key: bool, said: str
) -> None:
    two = {**make.TOOLS[make.TICKET], "idempotent": True, "key_ttl_s": 86_400, "approvals": 2}
    make.policy(people.tenant, by=people.admin, tools={**make.TOOLS, make.TICKET: two})
    item, second = in_review(people), signed_in(people.second_approver)
    assert "so far, with" not in body_of(second, f"/review/{item.pk}/approve/")
    decisions.approve(people.approver, item.pk, why="planned", new_provider_key=new_key)
    body = body_of(second, f"/review/{item.pk}/approve/")
    assert said in body
    assert ("<strong>approver</strong> for a new provider key," in body) is new_key
    decisions.approve(people.second_approver, item.pk, why="planned", new_provider_key=not new_key)
    assert "void: another provider key was chosen" in body_of(second, f"/review/{item.pk}/")


def test_a_note_is_called_one(people: Cast, signed_in: SignIn) -> None:
    item, client = in_review(people), signed_in(people.operator)
    form = client.get(f"/review/{item.pk}/note/").content.decode()
    assert '<label class="form-label" for="id_why">Note</label>' in form
    assert b"Type the note." in press(client, item, "note", why=" ").content


def test_an_approval_of_something_else_than_was_shown_is_refused_with_the_difference(
    people: Cast, signed_in: SignIn
) -> None:
    item, client = make.item_of(make.held(people.key)), signed_in(people.approver)
    ballot = item_page(people.approver, item.pk).ballot
    assert ballot is not None
    stricter = {**make.TOOLS, make.DEPLOY: {**make.TOOLS[make.DEPLOY], "approvals": 2}}
    make.policy(people.tenant, by=people.admin, tools=stricter)
    answer = press(
        client, item, "approve", why="as planned", shown_digest=ballot.digest, shown_meaning=ballot.meaning
    )
    assert answer.status_code == 409
    body = answer.content.decode()
    assert "as planned" in body
    assert "<del>" in body
    assert "<ins>" in body
    assert not Vote.objects.exists()
    now = item_page(people.approver, item.pk).ballot
    assert now is not None
    assert now.digest in body


def test_a_press_after_the_key_window_closed_is_told_what_protection_is_gone(
    people: Cast, signed_in: SignIn
) -> None:
    keeping = {**make.TOOLS[make.TICKET], "idempotent": True, "key_ttl_s": 3_600}
    make.policy(people.tenant, by=people.admin, tools={**make.TOOLS, make.TICKET: keeping})
    attempt = make.first_sent(make.for_a_person(people.key), timedelta(minutes=61))
    while_it_protected = key_window_of(attempt, rule_of(attempt), database_clock() - timedelta(minutes=5))
    seen, item, client = (
        binding_of(attempt, while_it_protected),
        make.item_of(attempt),
        signed_in(people.approver),
    )
    assert seen is not None
    answer = press(
        client, item, "approve", why="at once", shown_digest=seen.shown, shown_meaning=seen.meaning
    )
    assert answer.status_code == 409
    body = unescape(" ".join(answer.content.decode().split()))
    assert "the provider forgot the key: if the earlier send did happen, a new one is a second effect" in body
    assert "at once" in body
    assert "<del>" in body
    assert "the provider forgot it at" in body
    assert not Vote.objects.exists()
    ballot = item_page(people.approver, item.pk).ballot
    assert ballot is not None
    assert f'value="{ballot.digest}"' in body
    assert press(client, item, "approve", why="at once", shown_digest=ballot.digest).status_code == 303


def test_the_loser_of_a_race_sees_who_what_when_and_keeps_the_reason(people: Cast, signed_in: SignIn) -> None:
    item = in_review(people)
    decisions.confirm_did_not_happen(people.second_operator, item.pk, why="their log is empty")
    answer = press(signed_in(people.operator), item, "confirm-happened", why="I saw it", reference="tkt_7")
    assert answer.status_code == 409
    body = answer.content.decode()
    for part in ("Confirm it did not happen", "second-operator", "their log is empty", "I saw it", "ago"):
        assert part in body or (part == "ago" and "now" in body), part
    assert Decision.objects.count() == 1


def test_an_item_claimed_by_another_must_be_taken_over_first(people: Cast, signed_in: SignIn) -> None:
    item = in_review(people)
    assert press(signed_in(people.second_operator), item, "claim").status_code == 303
    client = signed_in(people.operator)
    assert press(client, item, "reject", why="no", what="did_not").status_code == 409
    assert press(client, item, "take-over", why="they went home").status_code == 303
    assert press(client, item, "reject", why="no", what="did_not").status_code == 303


def test_corrected_arguments_are_shown_before_they_are_recorded(people: Cast, signed_in: SignIn) -> None:
    item, client = make.item_of(make.held(people.key)), signed_in(people.operator)
    typed = json.dumps({"version": "2026.12"})
    shown = press(client, item, "relink-arguments", why="typo", typed=typed, step="compare")
    assert shown.status_code == 200
    body = shown.content.decode()
    assert "What changes: 1 field" in body
    assert "2026.11" in body
    assert not Decision.objects.exists()
    assert press(client, item, "relink-arguments", why="typo", typed=typed, step="record").status_code == 303
    assert Decision.objects.get().kind == DecisionKind.RELINK_ARGUMENTS
    assert state_of(item) == State.SUPERSEDED


def test_unreadable_arguments_are_given_back_as_typed(people: Cast, signed_in: SignIn) -> None:
    item, client = make.item_of(make.held(people.key)), signed_in(people.operator)
    for step in ("compare", "record"):
        answer = press(client, item, "relink-arguments", why="typo", typed='{"a": 1, "a": 2}', step=step)
        assert answer.status_code == 422
        body = answer.content.decode()
        assert "appears twice" in body
        assert "{&quot;a&quot;: 1, &quot;a&quot;: 2}" in body
    assert not Decision.objects.exists()


def test_an_item_is_assigned_only_within_its_tenant(people: Cast, signed_in: SignIn) -> None:
    item, client = in_review(people), signed_in(people.admin)
    assert press(client, item, "assign", why="hers", to="stranger").status_code == 422
    assert press(client, item, "assign", why="hers", to="operator").status_code == 303
    item.refresh_from_db()
    assert item.owner == people.operator
