"""An approval means exactly one thing: the ways in which one has meant more elsewhere, each refused here."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.test import Client

from ledger.authority import authority_for_leave, keys_of
from ledger.lifecycle import Decided, DecisionRefused, LeaveGiven, LeaveProblem, LeaveRefused, unlocked_case
from ledger.models import Approval, ApprovalUse, Attempt, Event, User, Vote
from ledger.reconciliation import sweep_once
from ledger.rules.authority import Allowed, Reason, Refused
from ledger.rules.canonical import canonical_bytes, content_hash
from ledger.rules.looked_up import LookedUpKind
from ledger.rules.states import State
from ledger.rules.vocabulary import DecisionKind, EventKind
from ledger.transactions import database_clock
from review import decisions
from review.door import NotPermitted
from review.queries import NotVisible, item_page
from tests.review.pages import action, page_of
from tests.support import make
from tests.support.cast import Cast, cast
from tests.support.races import at_once

WHY = "planned for tonight"


@pytest.fixture
def people(db: None) -> Cast:
    return cast()


@pytest.fixture
def held(people: Cast) -> Attempt:
    """A deployment that waits for one person's yes."""
    return make.held(people.key)


def approve(user: User, attempt: Attempt, **more: Any) -> Decided:
    return decisions.approve(user, make.item_of(attempt).pk, why=WHY, **more)


def refused_leave(people: Cast, attempt: Attempt) -> LeaveRefused:
    """A leave that is refused, and uses up nothing."""
    used = ApprovalUse.objects.count()
    refused = make.ask_leave(people.key, attempt)
    assert isinstance(refused, LeaveRefused)
    assert ApprovalUse.objects.count() == used
    return refused


def corrected(people: Cast, attempt: Attempt, typed: str) -> Attempt:
    decisions.relink_arguments(people.operator, make.item_of(attempt).pk, why="typo", typed=typed)
    return unlocked_case(attempt.operation).newest


def test_approved_a_executed_b(people: Cast, held: Attempt) -> None:
    """Leave is for the stored arguments, and whoever means others is told so before anything else."""
    approve(people.approver, held)
    held.args_hash = content_hash(canonical_bytes({"version": "2027.01"}))
    assert refused_leave(people, held).problem is LeaveProblem.ARGS_CHANGED
    sent = make.send(people.key, make.fresh(held))
    assert sent.args == make.ARGS[make.DEPLOY]
    assert ApprovalUse.objects.get().args_hash == sent.args_hash


def test_an_answer_to_one_item_used_by_another(people: Cast, held: Attempt) -> None:
    """Even one with the very same arguments, under another key."""
    other = make.held(people.key)
    assert other.args_hash == held.args_hash
    shown = item_page(people.approver, make.item_of(held).pk).ballot
    assert shown is not None
    with pytest.raises(DecisionRefused) as refused:
        approve(people.approver, other, shown_digest=shown.digest)
    assert refused.value.code == "changed-while-reading"
    approve(people.approver, held)
    assert refused_leave(people, other).problem is LeaveProblem.ON_HOLD


def test_an_approval_used_on_a_later_turn(people: Cast) -> None:
    """It is spent with the first send: what comes after that asks again."""
    lost = make.for_a_person(people.key)
    approve(people.approver, lost)
    sent = make.send(people.key, lost)
    again = make.looked_up(make.reported(people.key, sent, "unknown"), LookedUpKind.NO_LOOKUP)
    assert again.number == 2
    assert refused_leave(people, again).problem is LeaveProblem.ON_HOLD
    assert ApprovalUse.objects.count() == 1


def test_a_yes_from_before_a_send_is_none_for_the_next(people: Cast) -> None:
    """Two approved the first send, and one of them pressed once more before it left: when it is lost, that
    press and a single new yes are not two people who want it sent again."""
    rule = {**make.TOOLS[make.DEPLOY], "approvals": 2}
    make.policy(people.tenant, by=people.admin, tools={**make.TOOLS, make.DEPLOY: rule})
    held = make.held(people.key)
    for approver in (people.approver, people.second_approver, people.second_approver):
        approve(approver, held)
    lost = make.looked_up(
        make.reported(people.key, make.send(people.key, held), "unknown"), LookedUpKind.NO_LOOKUP
    )
    approve(people.approver, lost)
    assert not Approval.objects.filter(attempt=lost, used_at=None).exists()
    assert refused_leave(people, lost).problem is LeaveProblem.ON_HOLD
    approve(people.second_approver, lost)
    assert isinstance(make.ask_leave(people.key, lost), LeaveGiven)


def test_two_yeses_for_different_provider_keys(people: Cast) -> None:
    """A round is for one key: who chooses another takes back what was said before; that may be said anew."""
    lost = absent_payment(people)
    approve(people.approver, lost, new_provider_key=True)
    approve(people.second_approver, lost)
    page = page_of(people.approver, lost)
    assert [(vote.by, vote.new_key) for vote in page.votes.open] == [("second-approver", False)]
    (voided,) = page.votes.voided
    assert (voided.by, voided.new_key, voided.void_cause) == (
        "approver",
        True,
        "another provider key was chosen",
    )
    event = Event.objects.get(kind=EventKind.VOTE_VOIDED)
    assert (event.actor, event.data["cause"]) == ("second-approver", voided.void_cause)
    assert action(page, DecisionKind.APPROVE).enabled
    assert not Approval.objects.filter(used_at=None).exists()
    approve(people.approver, lost)
    assert page_of(people.approver, lost).votes.holds
    assert make.send(people.key, lost).idempotency_key == lost.idempotency_key


def test_a_re_check_between_two_votes_takes_none_back(people: Cast) -> None:
    """What people see before each send stays with them when it is found absent: the second of two may come
    hours later and look again first."""
    lost = absent_payment(people)
    approve(people.approver, lost)
    decisions.recheck(people.second_approver, make.item_of(lost).pk, why="that was hours ago")
    assert make.fresh(lost).state == State.UNKNOWN
    lost = make.found_absent(lost, canary_seen=True)
    assert (lost.state, lost.reason) == (State.MANUAL_REVIEW, "approval_required")
    approve(people.second_approver, lost)
    assert isinstance(make.ask_leave(people.key, lost), LeaveGiven)


def absent_payment(people: Cast) -> Attempt:
    """A payment two people let go, which was not found: whether to send it again asks two once more."""
    rule = {**make.TOOLS[make.REFUND], "review": "always"}
    make.policy(people.tenant, by=people.admin, tools={**make.TOOLS, make.REFUND: rule})
    held = make.recorded(people.key, make.REFUND)
    for approver in (people.approver, people.second_approver):
        approve(approver, held)
    lost = make.found_absent(
        make.reported(people.key, make.send(people.key, held), "unknown"), canary_seen=True
    )
    assert (lost.state, lost.reason) == (State.MANUAL_REVIEW, "approval_required")
    return lost


def test_an_approval_from_before_the_change(people: Cast, held: Attempt) -> None:
    """Of the arguments, and of the rule: the new question has its own answer."""
    approve(people.approver, held)
    stricter = {**make.TOOLS[make.DEPLOY], "cost": {"amount": "/price"}}
    make.policy(people.tenant, by=people.admin, tools={**make.TOOLS, make.DEPLOY: stricter})
    assert refused_leave(people, held).reasons == (Reason.APPROVAL_STALE,)
    sweep_once()
    assert Approval.objects.get().void_cause == "rule changed"
    changed = corrected(people, held, '{"version": "2026.12"}')
    assert refused_leave(people, changed).problem is LeaveProblem.ON_HOLD


def test_previews_equal_arguments_different(people: Cast) -> None:
    """The sentence leaves out what differs; the digest does not."""
    first = make.recorded(people.key, make.DEPLOY, args={"version": "2026.11", "where": "staging"})
    second = make.recorded(people.key, make.DEPLOY, args={"version": "2026.11", "where": "everywhere"})
    pages = [item_page(people.approver, make.item_of(attempt).pk) for attempt in (first, second)]
    assert pages[0].sentence == pages[1].sentence
    shown, others = pages[0].ballot, pages[1].ballot
    assert shown is not None
    assert others is not None
    assert shown.meaning == others.meaning
    assert shown.digest != others.digest
    with pytest.raises(DecisionRefused):
        approve(people.approver, second, shown_digest=shown.digest)


def test_a_deactivated_approver(people: Cast, held: Attempt) -> None:
    with pytest.raises(NotVisible):
        approve(people.inactive, held)
    approve(people.approver, held)
    User.objects.filter(pk=people.approver.pk).update(is_active=False)
    assert refused_leave(people, held).reasons == (Reason.APPROVER_REFUSED,)
    sweep_once()
    assert refused_leave(people, held).reasons == (Reason.APPROVER_REFUSED,)
    approve(people.second_approver, held)
    assert isinstance(make.ask_leave(people.key, held), LeaveGiven)


def test_the_requester_approves(people: Cast) -> None:
    asked = make.held(people.key, requested_by=people.approver)
    with pytest.raises(NotPermitted, match="asked for this"):
        approve(people.approver, asked)
    with pytest.raises(NotPermitted, match="own the agent"):
        approve(people.owner, asked)
    assert not Vote.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_at_once() -> None:
    """Two who approve, and one who approves while another rejects: at most one approval, never both."""
    people = cast()
    both = make.held(people.key)
    at_once(partial(approve, people.approver, both), partial(approve, people.second_approver, both))
    assert Approval.objects.filter(attempt=both, voided_at=None).count() == 1
    torn = make.held(people.key)
    item = make.item_of(torn)
    at_once(
        partial(approve, people.approver, torn),
        partial(decisions.reject, people.operator, item.pk, why="not tonight"),
    )
    waits = Approval.objects.filter(attempt=torn, voided_at=None, used_at=None).exists()
    assert (make.fresh(torn).state == State.INTENT_RECORDED) is waits


def test_expired_one_millisecond_before_use(people: Cast, held: Attempt) -> None:
    approve(people.approver, held)
    approval, keys = Approval.objects.get(), keys_of(held.agent)
    ask = partial(
        authority_for_leave,
        held.operation,
        make.fresh(held),
        keys=keys,
        approval=approval,
        needs_approval=True,
    )
    before, at = approval.expires_at - timedelta(milliseconds=1), approval.expires_at
    assert ask(now=before) == Allowed()
    for late in (at, at + timedelta(milliseconds=1)):
        answer = ask(now=late)
        assert isinstance(answer, Refused)
        assert answer.reasons == (Reason.APPROVAL_EXPIRED,)


def test_consumed_though_nothing_was_sent(people: Cast, held: Attempt) -> None:
    """A refused leave spends nothing; a leave after which its agent dies spends it, and says so."""
    approve(people.approver, held)
    other_hash = make.fresh(held)
    other_hash.args_hash = content_hash(b"{}")
    refused_leave(people, other_hash)
    assert Approval.objects.get().used_at is None
    sent = make.send(people.key, make.fresh(held))
    Attempt.objects.filter(pk=sent.pk).update(lease_until=database_clock())
    sweep_once()
    assert make.fresh(sent).state == State.UNKNOWN
    assert Approval.objects.get().used_at is not None
    assert refused_leave(people, sent).problem is LeaveProblem.IN_FLIGHT


class TestReauthenticationThatReplays:
    """The password again after 5 minutes; a form that decided once, or is of something else, never does."""

    @pytest.fixture(autouse=True)
    def cheap_passwords(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Still stored in a newer form when they are asked for, as those of old accounts are."""
        monkeypatch.setattr(PBKDF2PasswordHasher, "iterations", 2)

    @pytest.fixture
    def browser(self, people: Cast) -> Client:
        client = Client()
        client.force_login(people.approver, backend="django.contrib.auth.backends.ModelBackend")
        stale(client)
        return client

    def test_the_form_asks_and_decides_once(self, held: Attempt, browser: Client) -> None:
        typed = form_of(browser, held)
        assert "press" in typed
        assert press(browser, held, typed).status_code == 422
        assert press(browser, held, {**typed, "password": "wrong"}).status_code == 422
        assert not Vote.objects.exists()
        assert (
            press(browser, held, {**form_of(browser, held), "password": "approver-secret"}).status_code == 303
        )
        assert Vote.objects.count() == 1

    def test_the_same_form_again_decides_nothing(self, held: Attempt, browser: Client) -> None:
        typed = {**form_of(browser, held), "password": "approver-secret"}
        assert press(browser, held, typed).status_code == 303
        for forget in (False, True):
            if forget:
                stale(browser)
            assert press(browser, held, typed).status_code == 409
        assert Vote.objects.count() == 1

    def test_a_form_made_for_another_item_decides_nothing(
        self, people: Cast, held: Attempt, browser: Client
    ) -> None:
        other = make.held(people.key, args={"version": "2027.01"})
        made_for_other = form_of(browser, other)
        typed = {**form_of(browser, held), "press": made_for_other["press"], "password": "approver-secret"}
        assert press(browser, held, typed).status_code == 409
        assert not Vote.objects.exists()

    def test_a_form_made_by_somebody_else_decides_nothing(
        self, people: Cast, held: Attempt, browser: Client
    ) -> None:
        second = Client()
        second.force_login(people.second_approver, backend="django.contrib.auth.backends.ModelBackend")
        stale(second)
        typed = {**form_of(browser, held), "password": "second-approver-secret"}
        assert press(second, held, typed).status_code == 409
        assert not Vote.objects.exists()

    def test_a_form_from_before_a_change_shows_the_change_and_asks_anew(
        self, people: Cast, held: Attempt, browser: Client
    ) -> None:
        typed = {**form_of(browser, held), "password": "approver-secret"}
        renamed = {**make.TOOLS[make.DEPLOY], "approvals": 2}
        make.policy(people.tenant, by=people.admin, tools={**make.TOOLS, make.DEPLOY: renamed})
        assert press(browser, held, typed).status_code == 409
        assert not Vote.objects.exists()

    def test_a_fresh_sign_in_and_a_harmless_effect_ask_nothing(self, people: Cast, held: Attempt) -> None:
        client = Client()
        client.force_login(people.approver, backend="django.contrib.auth.backends.ModelBackend")
        assert "press" not in form_of(client, held)
        stale(client)
        assert "press" not in form_of(client, make.for_a_person(people.key))


def stale(client: Client) -> None:
    session = client.session
    session["authenticated_at"] = (database_clock() - timedelta(minutes=6)).isoformat()
    session.save()


def form_of(client: Client, attempt: Attempt) -> dict[str, str]:
    """What the approve form of an attempt holds when it is opened."""
    answer = client.get(f"/review/{make.item_of(attempt).pk}/approve/")
    form = answer.context["asked"].form
    return {name: str(form[name].value() or "") for name in form.fields if name != "password"} | {"why": WHY}


def press(client: Client, attempt: Attempt, typed: Mapping[str, str]) -> Any:
    return client.post(f"/review/{make.item_of(attempt).pk}/approve/", typed)
