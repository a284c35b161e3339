"""Pages as values, so that templates can be rendered in every state without leading an attempt there."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from ledger.rules.canonical import canonical_bytes, content_hash
from ledger.rules.key_window import key_window
from ledger.rules.next_step import NextStep
from ledger.rules.states import State
from ledger.rules.vocabulary import DecisionKind, Effect, ReviewReason
from review.queries import ItemPage, QueuePage, QueueRow, Tab
from review.queries.arguments import indented
from review.queries.lane_values import Lanes
from review.queries.marked import deceptive_characters, marked_text
from review.queries.page import (
    ActionView,
    AgentWords,
    Arguments,
    AssigneeView,
    AttemptView,
    Ballot,
    DecisionView,
    EventView,
    Evidence,
    LookUpView,
    Sides,
    ThenNow,
    Votes,
    VoteView,
)
from review.queries.values import Claim, ContentHash, Owner, TenantView
from review.queries.words import DECISION_LABELS
from review.rights import Rights

NOW = datetime(2026, 11, 29, 3, 12, 9, tzinfo=UTC)
ITEM_ID = "rev_01hsample00000000000000001"
ARGS = {
    "amount": 129.5,
    "currency": "EUR",
    "customer": "cus_8812 Ana Petrović",
    "charge": "ch_3PqX9",
    "reason": "arrived broken, second complaint; see ticket 4411",
    "lines": [{"sku": "LMP-22", "quantity": 1}, {"sku": "SHD-07", "quantity": 2}],
}
TENANT = TenantView(1, "north", "Northwind Support", suspended=False)
K = DecisionKind


def ago(**span: float) -> datetime:
    return NOW - timedelta(**span)


def arguments_with(args: object) -> Arguments:
    stored = canonical_bytes(args)
    segments = marked_text(indented(stored.decode()))
    return Arguments(
        known=True,
        text=indented(stored.decode()),
        segments=segments,
        deceptive=deceptive_characters(segments),
        size=len(stored),
        open_in_full=False,
        masked=(),
        hash=ContentHash(content_hash(stored)),
        matches_hash=True,
    )


def action(kind: DecisionKind, consequence: str, *why_disabled: str) -> ActionView:
    return ActionView(kind, DECISION_LABELS[kind], not why_disabled, consequence, why_disabled)


ACTIONS = (
    action(
        K.APPROVE,
        "Sends 1 new provider call with the same key as before; 2 h of its 24 h are left.",
    ),
    action(K.REJECT, "Closes the operation to sending for ever."),
    action(K.CONFIRM_HAPPENED, "Settles it as confirmed on your word, with the provider’s reference."),
    action(K.CONFIRM_DID_NOT, "Settles it as failed on your word; nothing is sent again."),
    action(K.RELINK_ARGUMENTS, "Holds a new attempt with your arguments, to be approved on its own."),
    action(K.RELINK_RECORD, "Looks the named record up at once."),
    action(K.RECHECK, "", "A look-up is under way since 2 s; its answer comes first."),
    action(K.CLAIM, "Shows others that you are on it for 15 minutes."),
    action(K.RELEASE, "", "You have no claim on it."),
    action(K.TAKE_OVER, "", "Nobody else holds it."),
    action(K.ASSIGN, "Makes you or one of your groups its owner."),
    action(K.NOTE, "Adds a note to the history; decides nothing."),
)

THEN_NOW = (
    ThenNow("Tenant", "active", "active", ok=True, words="", reasons=()),
    ThenNow("Agent", "refund-bot", "refund-bot, active", ok=True, words="", reasons=()),
    ThenNow("Owner of the agent", "mira", "mira, active", ok=True, words="", reasons=()),
    ThenNow("Key", "tool:refund.*", "1 live key, tool:refund.*", ok=True, words="", reasons=()),
    ThenNow("Cancelled", "no", "no", ok=True, words="", reasons=()),
    ThenNow("Expiry", "none", "none", ok=True, words="", reasons=()),
    ThenNow(
        "Policy",
        "version 3",
        "version 4",
        ok=False,
        words="The rule changed since.",
        reasons=("policy-changed",),
    ),
    ThenNow("Attempts", "1 of 5", "1 of 5", ok=True, words="", reasons=()),
    ThenNow("Budget of the run", "12 tool calls left", "3 tool calls left", ok=True, words="", reasons=()),
)


AGENT_WORDS = AgentWords(
    marked_text("planner step 7: customer is furious, APPROVE NOW"), "run-2211", "7", "", ()
)
NOTE = DecisionView(K.NOTE, "Note", "jonas", ago(minutes=9), "Asked the provider’s support.", {})


def item(**changes: object) -> ItemPage:
    """One sent refund whose outcome is not known, seen by an operator who may approve."""
    args = arguments_with(ARGS)
    sentence = "Refund 129.5 EUR to cus_8812 Ana Petrović"
    page = ItemPage(
        item_id=ITEM_ID,
        tenant=TENANT,
        operation_id="op_01hsample00000000000000001",
        operation_key="refund:north:ticket-4411:lamp",
        outcome="open",
        attempt_id="att_01hsample0000000000000001",
        attempt_number=1,
        agent="refund-bot",
        agent_owner="mira",
        requested_by="jonas",
        arguments_by=None,
        tool="refund.create",
        effect=Effect.PAYMENT,
        effect_words="Moves money",
        state=State.MANUAL_REVIEW,
        reason=ReviewReason.NOT_IDEMPOTENT,
        reason_words="Not found, and the provider keeps no keys",
        not_known="Whether a new send is safe: it was not found, and the provider keeps no keys.",
        headline="Whether a new send is safe: it was not found, and the provider keeps no keys.",
        sentence=sentence,
        sentence_segments=marked_text(sentence),
        opened_at=ago(minutes=47),
        entered_state_at=ago(minutes=12),
        due_at=NOW + timedelta(hours=3),
        overdue=False,
        escalated=None,
        closing=None,
        owner=Owner("north reviewers", None, is_me=False),
        claim=None,
        next_step=NextStep("nothing", None, "it stays here; nothing is sent."),
        ledger_sends=False,
        evidence=_evidence(),
        arguments=args,
        then_now=THEN_NOW,
        may_send_now=True,
        provider_keeps_keys=False,
        policy_changes=(),
        chain=(_link(args.hash),),
        comparisons=(),
        twins=(),
        votes=Votes(2, (_vote(),), (), ("olga",), (), None),
        sides=Sides(2, (), ()),
        ballot=Ballot("v1:sha256:" + "5e" * 32, MEANING, marked_text(MEANING), NOW + timedelta(minutes=30)),
        actions=ACTIONS,
        assignees=(AssigneeView("olga", "olga (me)"), AssigneeView("#north reviewers", "north reviewers")),
        agent_words=AGENT_WORDS,
        decisions=(NOTE,),
        events=_events(),
        events_total=5,
        head=5,
        lanes=Lanes(execution_attempts=1),
        rights=Rights(view=True, decide=True),
        as_of=NOW,
    )
    return replace(page, **changes)  # type: ignore[arg-type]


MEANING = """One new send of refund.create by refund-bot in Northwind Support.
Arguments v1:sha256:3c…; rule v1:sha256:aa… of policy 4; scopes tool:refund.*.
The provider keeps no keys: it cannot recognise an earlier send of the same."""


def _vote() -> VoteView:
    return VoteView(
        "jonas",
        ago(minutes=3),
        NOW + timedelta(minutes=27),
        "Provider support saw nothing.",
        "",
        new_key=False,
    )


def _evidence() -> Evidence:
    return Evidence(
        provider_request_id="req_77fa01",
        result_ref="",
        success_reported=False,
        dispatched_at=ago(minutes=48),
        lease_until=None,
        lookups=(
            LookUpView(
                1, ago(minutes=12), "absent", "Not found", "0 of 0 records match", "not_idempotent", ()
            ),
            LookUpView(1, ago(minutes=13), "absent", "Not found", "0 of 0 records match", "negatives", ()),
            LookUpView(
                1, ago(minutes=47), "unavailable", "The provider did not answer", "503", "unavailable", ()
            ),
        ),
        lookups_total=7,
        checks=4,
        max_checks=20,
        next_check_at=None,
        idempotency_key="ik_7b1f0c62a9e84d1f",
        key_window=key_window(
            idempotent=False, key_ttl_s=0, first_sent_at=ago(minutes=48), generation=1, now=NOW
        ),
    )


def _link(content: ContentHash) -> AttemptView:
    return AttemptView(
        attempt_id="att_01hsample0000000000000001",
        number=1,
        state=State.MANUAL_REVIEW,
        reason="not_idempotent",
        reason_words="Not found, and the provider keeps no keys",
        hash=content,
        same_hash=True,
        held=False,
        sent=True,
        descends_from=None,
        created_at=ago(minutes=49),
        dispatched_at=ago(minutes=48),
        result_ref="",
        item_id=ITEM_ID,
        is_this=True,
    )


def _events() -> tuple[EventView, ...]:
    kinds = (
        "attempt.intent",
        "attempt.dispatched",
        "attempt.unknown",
        "attempt.looked_up",
        "attempt.manual_review",
    )
    actors = (
        ("agent", "refund-bot"),
        ("agent", "refund-bot"),
        ("system", "system"),
        ("reconciler", "reconciler"),
    )
    return tuple(
        EventView(
            sequence=number,
            kind=kinds[number - 1],
            actor_kind=actors[min(number, 4) - 1][0],
            actor=actors[min(number, 4) - 1][1],
            at=ago(minutes=50 - number),
            attempt_number=1,
            data='{"reason":"unknown"}',
            hash=ContentHash(content_hash(bytes([number]))),
        )
        for number in range(5, 0, -1)
    )


def row(number: int, state: State, **changes: object) -> QueueRow:
    args = arguments_with({**ARGS, "amount": number})
    found = QueueRow(
        item_id=f"rev_01hsample0000000000000000{number}",
        operation_id=f"op_01hsample0000000000000000{number}",
        operation_key=f"refund:north:ticket-{4410 + number}:lamp",
        attempt_id=f"att_01hsample000000000000000{number}",
        attempt_number=number,
        was_sent=True,
        tenant=TENANT,
        tool="refund.create",
        effect=Effect.PAYMENT,
        high_risk=number % 2 == 1,
        state=state,
        reason=ReviewReason.UNKNOWN,
        reason_words="Contact was lost",
        sentence=f"Refund {number}29.5 EUR to cus_8812 Ana Petrović",
        hash=args.hash,
        opened_at=ago(minutes=10 * number),
        entered_state_at=ago(minutes=10 * number),
        due_at=NOW + timedelta(hours=4 - number),
        overdue=number > 3,
        key_window=key_window(
            idempotent=bool(number % 2), key_ttl_s=10_800, first_sent_at=ago(hours=1), generation=1, now=NOW
        ),
        escalated=None,
        next_step=NextStep(
            "look-up", NOW + timedelta(seconds=20), "it is looked up until an answer decides."
        ),
        owner=Owner("north reviewers", "olga" if number == 2 else None, is_me=number == 2),
        claim=Claim("jonas", NOW + timedelta(minutes=9), is_mine=False) if number == 3 else None,
        approval_until=None,
        votes=None,
        closing=None,
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def queue_of(*rows: QueueRow, **changes: object) -> QueuePage:
    page = QueuePage(
        tab=Tab.ALL,
        rows=rows,
        counts=dict.fromkeys(Tab, len(rows)),
        next_cursor=None,
        tenants=(TENANT, TenantView(2, "south", "South Logistics", suspended=False)),
        tools=("refund.create", "email.send"),
        last_sweep_at=ago(seconds=3),
        as_of=NOW,
    )
    return replace(page, **changes)  # type: ignore[arg-type]
