"""What happens next by itself: a case for each row, and what holds of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.rules.key_window import KeyWindow, key_window
from ledger.rules.next_step import ROWS, StepFacts, next_step, row_of
from ledger.rules.states import FINAL, State

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def after(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def window(*, sent_ago_min: float | None, lasts_min: float = 60) -> KeyWindow:
    first_sent_at = None if sent_ago_min is None else after(-sent_ago_min)
    return key_window(
        idempotent=True, key_ttl_s=lasts_min * 60, first_sent_at=first_sent_at, generation=1, now=NOW
    )


NO_WINDOW = key_window(idempotent=False, key_ttl_s=0, first_sent_at=None, generation=1, now=NOW)
SENT = StepFacts(
    now=NOW, state=State.MANUAL_REVIEW, held=False, closed=False, due_at=after(120), key_window=NO_WINDOW
)
UNKNOWN = replace(SENT, state=State.UNKNOWN, next_check_at=after(3), max_checks=20)
HELD = replace(SENT, held=True)

# Row: the facts; what is said; when.
CASES: Mapping[str, list[tuple[StepFacts, str, datetime | None]]] = {
    "expired_approval": [
        (replace(HELD, approval_until=NOW), "The approval has expired", NOW),
        (replace(HELD, approval_until=after(-5), closed=True), "The approval has expired", after(-5)),
    ],
    "expires_while_approved": [
        (
            replace(HELD, approval_until=after(30), expires_at=after(10)),
            "The agent may ask for leave until the intent expires",
            after(10),
        )
    ],
    "approved": [
        (
            replace(HELD, approval_until=after(30), closed=True),
            "The agent may ask for leave until the approval expires",
            after(30),
        ),
        (
            replace(UNKNOWN, approval_until=after(30), ledger_sends=True),
            "The ledger itself asks for leave and sends it, until the approval expires",
            after(30),
        ),
        (
            replace(HELD, approval_until=after(30), expires_at=after(40)),
            "The agent may ask for leave until the approval expires",
            after(30),
        ),
    ],
    "closed": [(replace(SENT, closed=True), "Nothing: this question is closed", None)],
    "being_asked": [
        (
            replace(UNKNOWN, asked_until=after(0.5), unanswered=3),
            "The provider is being asked; its answer is waited for",
            after(0.5),
        )
    ],
    "unanswered": [
        (
            replace(UNKNOWN, unanswered=3),
            "Look-up again, the provider did not answer 3 times in a row",
            after(3),
        ),
        (
            replace(UNKNOWN, unanswered=1, next_check_at=NOW),
            "Look-up again, the provider did not answer the last time; due since",
            NOW,
        ),
    ],
    "looked_up": [
        (UNKNOWN, "Look-up at the provider", after(3)),
        (replace(UNKNOWN, next_check_at=after(-1)), "Look-up at the provider; due since", after(-1)),
        (replace(UNKNOWN, asked_until=NOW, snoozed_until=after(60)), "Look-up at the provider", after(3)),
    ],
    "expires": [(replace(HELD, expires_at=after(10)), "The intent expires", after(10))],
    "escalates": [
        (
            replace(SENT, key_window=window(sent_ago_min=20)),
            "Escalated: the provider is then about to forget the key",
            after(30),
        )
    ],
    "forgets": [
        (replace(SENT, key_window=window(sent_ago_min=55)), "The provider forgets the key", after(5)),
        (
            replace(SENT, key_window=window(sent_ago_min=55), due_at=after(-1), snoozed_until=after(99)),
            "The provider forgets the key",
            after(5),
        ),
    ],
    "snoozed": [(replace(SENT, snoozed_until=after(45)), "Snoozed: comes back to the queue", after(45))],
    "expired": [
        (replace(HELD, expires_at=NOW), "None: waits for a person; overdue", after(120)),
    ],
    "held": [(HELD, "None: waits for a person; overdue", after(120))],
    "contradicted": [
        (replace(SENT, evidence_only=True), "None: waits for a person; overdue", after(120)),
        (replace(SENT, state=State.FAILED), "None: waits for a person; overdue", after(120)),
    ],
    "for_a_person": [
        (SENT, "None: waits for a person; overdue", after(120)),
        (replace(SENT, due_at=NOW), "None: waits for a person; was due", NOW),
        (replace(SENT, key_window=window(sent_ago_min=60)), "None: waits for a person; overdue", after(120)),
        (
            replace(SENT, key_window=window(sent_ago_min=55), may_be_sent_again=False),
            "None: waits for a person; overdue",
            after(120),
        ),
        (
            replace(SENT, key_window=window(sent_ago_min=0, lasts_min=600)),
            "None: waits for a person; overdue",
            after(120),
        ),
    ],
}


def test_every_row_has_its_cases() -> None:
    assert list(CASES) == [row.name for row in ROWS]


@pytest.mark.parametrize(
    ("row", "facts", "what", "at"),
    [(row, *case) for row, cases in CASES.items() for case in cases],
)
def test_each_case(row: str, facts: StepFacts, what: str, at: datetime | None) -> None:
    assert row_of(facts).name == row
    step = next_step(facts)
    assert (step.what, step.at) == (what, at)
    assert step.if_nobody_acts


@pytest.mark.parametrize(
    ("facts", "who"),
    [
        (UNKNOWN, "the rule"),
        (replace(UNKNOWN, ever_held=True), "a person"),
        (replace(UNKNOWN, ever_held=True, may_be_sent_again=False), "the rule"),
    ],
    ids=["never held", "held", "held and closed to sending"],
)
def test_who_decides_where_nothing_is_found(facts: StepFacts, who: str) -> None:
    for asked in (facts, replace(facts, unanswered=1), replace(facts, asked_until=after(1))):
        assert f"not found, {who} decides" in next_step(asked).if_nobody_acts


MOMENTS = st.none() | st.integers(-300, 300).map(after)
FACTS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "state": st.sampled_from([State.UNKNOWN, State.MANUAL_REVIEW, *sorted(FINAL)]),
        "held": st.booleans(),
        "closed": st.booleans(),
        "evidence_only": st.booleans(),
        "may_be_sent_again": st.booleans(),
        "ever_held": st.booleans(),
        "ledger_sends": st.booleans(),
        "due_at": st.integers(-300, 300).map(after),
        "approval_until": MOMENTS,
        "expires_at": MOMENTS,
        "snoozed_until": MOMENTS,
        "next_check_at": st.integers(-300, 300).map(after),
        "asked_until": MOMENTS,
        "unanswered": st.integers(0, 3),
        "sent_ago_min": st.none() | st.integers(0, 90),
    }
)


@given(FACTS)
def test_every_open_item_says_when_and_what_follows(drawn: dict[str, Any]) -> None:
    sent_ago_min = drawn.pop("sent_ago_min")
    facts = StepFacts(now=NOW, key_window=window(sent_ago_min=sent_ago_min), **drawn)
    step = next_step(facts)
    times = {value for value in vars(facts).values() if isinstance(value, datetime)}
    if row_of(facts).name == "closed":
        assert step.at is None
    else:
        assert step.at in {*times, facts.key_window.closes_from, facts.key_window.ends_at}
    assert step.what
    assert step.if_nobody_acts.endswith(".")


@given(FACTS)
def test_a_time_that_is_over_is_only_named_where_the_next_sweep_acts_on_it(drawn: dict[str, Any]) -> None:
    sent_ago_min = drawn.pop("sent_ago_min")
    facts = StepFacts(now=NOW, key_window=window(sent_ago_min=sent_ago_min), **drawn)
    at = next_step(facts).at
    if at is not None and at < NOW:
        swept = {"expired_approval", "unanswered", "looked_up"}
        waits = {"expired", "held", "contradicted", "for_a_person"}
        assert row_of(facts).name in swept | waits
