"""What the page of a question says of votes, approvals, and of what became of it."""

from __future__ import annotations

import pytest
from guardian.shortcuts import remove_perm

from ledger.approvals import approval_facts
from ledger.models import Approval, Attempt, ReviewItem
from ledger.rules.authority import Reason
from ledger.rules.looked_up import LookedUpKind, Record
from ledger.rules.vocabulary import DecisionKind
from ledger.transactions import database_clock
from review import decisions
from review.queries import (
    QueueFilters,
    Tab,
    item_page,
    queue,
)
from tests.review.pages import action, page_of
from tests.support import make
from tests.support.cast import Cast


class TestVotes:
    @pytest.fixture
    def attempt(self, people: Cast) -> Attempt:
        stricter = {**make.TOOLS, make.DEPLOY: {**make.TOOLS[make.DEPLOY], "approvals": 2}}
        make.policy(people.tenant, by=people.admin, tools=stricter)
        return make.held(people.key)

    def test_k_of_n_and_who_may_still(self, people: Cast, attempt: Attempt) -> None:
        votes = page_of(people.viewer, attempt).votes
        assert (votes.needed, votes.open, votes.may_still_vote) == (2, (), ("approver", "second-approver"))
        decisions.approve(people.approver, make.item_of(attempt).pk, why="tested it")
        page = page_of(people.approver, attempt)
        assert [(vote.by, vote.why) for vote in page.votes.open] == [("approver", "tested it")]
        assert page.votes.may_still_vote == ("second-approver",)
        assert "counted already" in action(page, DecisionKind.APPROVE).why_disabled[0]

    def test_a_vote_for_another_rule_is_void_and_says_why(self, people: Cast, attempt: Attempt) -> None:
        decisions.approve(people.approver, make.item_of(attempt).pk, why="tested it")
        make.policy(people.tenant, by=people.admin)
        votes = page_of(people.viewer, attempt).votes
        assert votes.open == ()
        assert [vote.void_cause for vote in votes.voided] == ["what it was given for has changed"]

    def test_a_waiting_approval_and_its_end(self, people: Cast, attempt: Attempt) -> None:
        item = make.item_of(attempt)
        for user in (people.approver, people.second_approver):
            decisions.approve(user, item.pk, why="go")
        page = item_page(people.viewer, item.pk)
        assert page.votes.waiting is not None
        assert page.votes.waiting.by == ("approver", "second-approver")
        assert page.next_step.at == page.votes.waiting.expires_at
        make.send(people.key, make.fresh(attempt))
        used = item_page(people.viewer, item.pk).votes
        assert used.waiting is None
        assert [approval.status for approval in used.approvals] == ["used"]

    def test_a_waiting_approval_is_what_the_page_says_and_approving_again_replaces_it(
        self, people: Cast, attempt: Attempt
    ) -> None:
        item = make.item_of(attempt)
        for user in (people.approver, people.second_approver):
            decisions.approve(user, item.pk, why="go")
        page = item_page(people.approver, item.pk)
        assert page.headline == "Approved by approver and second-approver → waits for its agent"
        assert (page.votes.holds, page.votes.may_still_vote) == (True, ("approver", "second-approver"))
        again = action(page, DecisionKind.APPROVE)
        assert again.enabled
        assert again.consequence == (
            "Approved already by approver and second-approver; approving again replaces that approval once "
            "2 people have; 0 so far."
        )

    @pytest.mark.parametrize(
        ("change", "reasons"),
        [
            ("nothing", ()),
            ("rule", (Reason.APPROVAL_STALE,)),
            ("right", (Reason.APPROVER_REFUSED,)),
            ("time", (Reason.APPROVAL_EXPIRED,)),
        ],
    )
    def test_an_approval_that_covers_nothing_says_so_as_the_ledger_would(
        self, people: Cast, change: str, reasons: tuple[Reason, ...]
    ) -> None:
        life_s = 0.05 if change == "time" else 3_600
        rule = {**make.TOOLS[make.TICKET], "approval_ttl_s": life_s}
        make.policy(people.tenant, by=people.admin, tools={make.TICKET: rule})
        attempt = make.for_a_person(people.key)
        decisions.approve(people.approver, make.item_of(attempt).pk, why="go")
        (approval,) = Approval.objects.all()
        if change == "rule":
            make.policy(people.tenant, by=people.admin, tools={make.TICKET: {**rule, "approvals": 2}})
        if change == "right":
            remove_perm("ledger.decide_work", people.approver, people.tenant)
        while change == "time" and database_clock() < approval.expires_at:
            pass
        page = page_of(people.viewer, attempt)
        assert page.votes.lapsed == reasons
        facts = approval_facts(approval, sender=people.agent, now=database_clock())
        as_ledger = {
            Reason.APPROVAL_EXPIRED: page.as_of >= facts.expires_at,
            Reason.APPROVAL_STALE: not facts.digest_equal,
            Reason.APPROVER_REFUSED: not facts.approvers_permitted,
        }
        assert tuple(reason for reason, holds in as_ledger.items() if holds) == reasons
        consequence = action(page, DecisionKind.APPROVE).consequence
        assert ("no longer covers this send" in consequence) is bool(reasons)
        assert all(reason in consequence for reason in reasons)

    def test_where_the_ledger_sends_it_says_so(self, people: Cast) -> None:
        rule = {**make.TOOLS[make.DEPLOY], "executor": "ledger", "provider": "cloud"}
        make.policy(people.tenant, tools={make.DEPLOY: rule})
        item = make.item_of(make.held(people.key))
        approve = action(item_page(people.viewer, item.pk), DecisionKind.APPROVE)
        assert "at once, by the ledger itself" in approve.consequence
        decisions.approve(people.approver, item.pk, why="go")
        assert "The ledger itself asks for leave" in item_page(people.viewer, item.pk).next_step.what
        assert item_page(people.viewer, item.pk).headline.endswith("→ the ledger sends it itself")
        (row,) = queue(people.viewer, QueueFilters(tab=Tab.WAITING)).rows
        assert row.next_step.what == item_page(people.viewer, item.pk).next_step.what

    def test_a_success_that_arrives_voids_it_with_its_cause(self, people: Cast) -> None:
        attempt = make.for_a_person(people.key)
        decisions.approve(people.approver, make.item_of(attempt).pk, why="go")
        make.reported(people.key, attempt, "succeeded", result_ref="re_1")
        (approval,) = page_of(people.viewer, attempt).votes.approvals
        assert approval.status == "void"
        assert approval.void_words


class TestWhatBecameOfIt:
    def headline(self, people: Cast, attempt: Attempt) -> str:
        return page_of(people.viewer, attempt).headline

    def test_an_open_question_is_the_headline(self, people: Cast) -> None:
        page = page_of(people.viewer, make.for_a_person(people.key))
        assert page.headline == page.not_known

    def test_an_approved_new_send_is_followed_to_its_end(self, people: Cast) -> None:
        attempt = make.for_a_person(people.key)
        decisions.approve(people.approver, make.item_of(attempt).pk, why="go")
        assert self.headline(people, attempt) == "Approved by approver → waits for its agent"
        again = make.send(people.key, make.fresh(attempt))
        sent = "Approved by approver → sent as attempt 2"
        assert self.headline(people, attempt) == f"{sent} → its outcome is not reported yet"
        make.reported(people.key, again, "succeeded", result_ref="tkt_8")
        assert self.headline(people, attempt) == f"{sent} → confirmed tkt_8"

    def test_an_approved_first_send_too(self, people: Cast) -> None:
        attempt = make.held(people.key)
        decisions.approve(people.approver, make.item_of(attempt).pk, why="go")
        make.reported(people.key, make.send(people.key, make.fresh(attempt)), "unknown")
        first = ReviewItem.objects.filter(attempt=attempt).earliest("pk")
        page = item_page(people.viewer, first.pk)
        assert page.headline == "Approved by approver → sent → its outcome is being looked up"

    def test_what_a_person_confirmed_rejected_or_corrected(self, people: Cast) -> None:
        happened, failed, rejected = (make.for_a_person(people.key) for _ in range(3))
        decisions.confirm_happened(people.operator, make.item_of(happened).pk, why="seen", reference="tkt_7")
        decisions.confirm_did_not_happen(people.operator, make.item_of(failed).pk, why="not there")
        decisions.reject(people.operator, make.item_of(rejected).pk, why="no", what="did_not")
        assert self.headline(people, happened) == "Confirmed by operator → tkt_7"
        assert self.headline(people, failed) == "Confirmed not to have happened by operator"
        assert self.headline(people, rejected) == "Rejected by operator"

    def test_an_approval_taken_back(self, people: Cast) -> None:
        attempt = make.held(people.key)
        item = make.item_of(attempt)
        decisions.approve(people.approver, item.pk, why="go")
        decisions.reject(people.operator, item.pk, why="not tonight")
        assert item_page(people.viewer, item.pk).headline == "Approved by approver → rejected by operator"
        assert self.headline(people, attempt) == "Rejected by operator"

    def test_what_was_found_or_reported(self, people: Cast) -> None:
        found, told = make.unknown(people.key), make.for_a_person(people.key)
        record = Record(reference="msg_7", content="same", state="done", data={})
        make.looked_up(found, LookedUpKind.FOUND, record)
        make.reported(people.key, told, "succeeded", result_ref="tkt_9")
        assert self.headline(people, found) == "Found by a look-up → confirmed msg_7"
        assert self.headline(people, told) == "Reported by its agent → confirmed tkt_9"

    def test_without_an_effect_it_is_said_who_found_so_and_what_follows(self, people: Cast) -> None:
        tools = {**make.TOOLS, make.TICKET: {"effect": "read"}}
        make.policy(people.tenant, by=people.admin, tools=tools)
        absent, told, reads = (make.unknown(people.key, tool) for tool in (make.MAIL, make.MAIL, make.TICKET))
        make.found_absent(absent, canary_seen=True)
        refused = {"no_effect": True, "retryable": True, "error_class": "refused"}
        make.reported(people.key, told, "failed", **refused)
        make.looked_up(reads, LookedUpKind.NO_LOOKUP)
        again = "not to have happened → may be sent again"
        assert self.headline(people, absent) == f"Found by a look-up {again}"
        assert self.headline(people, told) == f"Reported by its agent {again}"
        assert self.headline(people, reads) == "Needs no answer: it only reads → may be sent again"

    def test_of_what_was_held_a_person_is_asked_before_each_send(self, people: Cast) -> None:
        held = make.held(people.key)
        decisions.approve(people.approver, make.item_of(held).pk, why="go")
        sent = make.reported(people.key, make.send(people.key, make.fresh(held)), "unknown")
        follows = page_of(people.viewer, sent).next_step.if_nobody_acts
        assert "not found, a person decides" in follows
        refused = {"no_effect": True, "retryable": True, "error_class": "refused"}
        make.reported(people.key, sent, "failed", **refused)
        asked = "Reported by its agent not to have happened → a person is asked before it is sent again"
        assert self.headline(people, sent) == asked

    def test_corrected_arguments_lead_to_the_attempt_that_replaced_it(self, people: Cast) -> None:
        attempt = make.held(people.key)
        typed = '{"version": "2026.12"}'
        decisions.relink_arguments(people.operator, make.item_of(attempt).pk, why="typo", typed=typed)
        assert self.headline(people, attempt) == (
            "Corrected by operator → other arguments as attempt 2 → "
            "a person decides: same key, other arguments"
        )
