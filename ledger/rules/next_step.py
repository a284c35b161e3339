"""What happens next by itself to what an item asks about, when, and what it leads to if nobody acts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from ledger.rules.key_window import KeyWindow, Protection
from ledger.rules.states import FINAL, State


@dataclass(frozen=True)
class NextStep:
    """`at` None: nothing is timed. A time that has passed is due: the next sweep acts on it."""

    what: str
    at: datetime | None
    if_nobody_acts: str


@dataclass(frozen=True)
class StepFacts:
    """One item and its attempt as they stand at `now`.

    `held`: never sent. `may_be_sent_again`: neither rejected nor cancelled. `ever_held`: it, or what it
    descends from, was: people see each send first. `evidence_only`: under the item's reason even a receipt
    settles nothing. `approval_until`: an unused approval lasts until then. `ledger_sends`: the next send
    needs no agent. `asked_until`: a look-up is under way, at most so long. `unanswered`: look-ups in a row
    without an answer. Spans and counts of the attempt's own rule.
    """

    now: datetime
    state: State
    held: bool
    closed: bool
    due_at: datetime
    key_window: KeyWindow
    may_be_sent_again: bool = True
    ever_held: bool = False
    evidence_only: bool = False
    approval_until: datetime | None = None
    ledger_sends: bool = False
    expires_at: datetime | None = None
    snoozed_until: datetime | None = None
    next_check_at: datetime | None = None
    asked_until: datetime | None = None
    unanswered: int = 0
    max_checks: int = 0

    def comes(self, moment: datetime | None) -> bool:
        """Is this time still to come?"""
        return moment is not None and self.now < moment

    @property
    def due(self) -> str:
        """Said of a look-up whose time has come: the next pass makes it."""
        return "" if self.comes(self.next_check_at) else "; due since"

    @property
    def approved(self) -> bool:
        return self.comes(self.approval_until)

    @property
    def expires_while_approved(self) -> bool:
        """Does the intent end before its approval does?"""
        until, end = self.approval_until, self.expires_at
        return until is not None and end is not None and self.now < end < until

    @property
    def clock_runs(self) -> bool:
        """Does an unsettled send still have a protection to lose, and before the item is due?"""
        ends_at = self.key_window.ends_at
        unsettled = self.state is State.MANUAL_REVIEW and not self.held and self.may_be_sent_again
        return unsettled and ends_at is not None and (ends_at < self.due_at or self.due_at <= self.now)


def next_step(facts: StepFacts) -> NextStep:
    """The step of the first row that holds."""
    return row_of(facts).step(facts)


@dataclass(frozen=True)
class Row:
    name: str
    holds: Callable[[StepFacts], bool]
    step: Callable[[StepFacts], NextStep]


def row_of(facts: StepFacts) -> Row:
    return next(row for row in ROWS if row.holds(facts))


_UNPROTECTED = "It stays here. A new send after that would be a second effect to the provider, no repetition."


def _found_or_not(facts: StepFacts) -> str:
    who = "a person" if facts.ever_held and facts.may_be_sent_again else "the rule"
    return f"Found, it is settled; not found, {who} decides"


def _may_be_sent(facts: StepFacts) -> str:
    return (
        "The ledger itself asks for leave and sends it,"
        if facts.ledger_sends
        else "The agent may ask for leave"
    )


def _expired_approval(facts: StepFacts) -> NextStep:
    return NextStep(
        "The approval has expired", facts.approval_until, "The question comes back; nothing is sent."
    )


def _expires_while_approved(facts: StepFacts) -> NextStep:
    return NextStep(
        f"{_may_be_sent(facts)} until the intent expires",
        facts.expires_at,
        "Leave is refused from then on; nothing is sent.",
    )


def _approved(facts: StepFacts) -> NextStep:
    return NextStep(
        f"{_may_be_sent(facts)} until the approval expires",
        facts.approval_until,
        "The approval expires unused and the question comes back; nothing is sent.",
    )


def _closed(_: StepFacts) -> NextStep:
    return NextStep("Nothing: this question is closed", None, "Nothing happens.")


def _being_asked(facts: StepFacts) -> NextStep:
    return NextStep(
        "The provider is being asked; its answer is waited for",
        facts.asked_until,
        f"{_found_or_not(facts)}; no answer, it is asked again. Nothing is sent before that.",
    )


def _unanswered(facts: StepFacts) -> NextStep:
    often = "the last time" if facts.unanswered == 1 else f"{facts.unanswered} times in a row"
    return NextStep(
        f"Look-up again, the provider did not answer {often}{facts.due}",
        facts.next_check_at,
        f"It is asked until it answers. {_found_or_not(facts)}. Nothing is sent before that.",
    )


def _looked_up(facts: StepFacts) -> NextStep:
    return NextStep(
        f"Look-up at the provider{facts.due}",
        facts.next_check_at,
        f"{_found_or_not(facts)}; after {facts.max_checks} answers that decide nothing a person is asked. "
        "Nothing is sent before that.",
    )


def _expires(facts: StepFacts) -> NextStep:
    return NextStep("The intent expires", facts.expires_at, "It can no longer be approved; nothing is sent.")


def _escalates(facts: StepFacts) -> NextStep:
    return NextStep(
        "Escalated: the provider is then about to forget the key", facts.key_window.closes_from, _UNPROTECTED
    )


def _forgets(facts: StepFacts) -> NextStep:
    return NextStep("The provider forgets the key", facts.key_window.ends_at, _UNPROTECTED)


def _wakes(facts: StepFacts) -> NextStep:
    return NextStep(
        "Snoozed: comes back to the queue",
        facts.snoozed_until,
        "It waits for a person again. Nothing is sent.",
    )


def _waits(if_nobody_acts: str) -> Callable[[StepFacts], NextStep]:
    """No step at all: only the time it is due at."""

    def step(facts: StepFacts) -> NextStep:
        overdue = "overdue" if facts.comes(facts.due_at) else "was due"
        return NextStep(f"None: waits for a person; {overdue}", facts.due_at, if_nobody_acts)

    return step


ROWS: tuple[Row, ...] = (
    Row("expired_approval", lambda f: f.approval_until is not None and not f.approved, _expired_approval),
    Row("expires_while_approved", lambda f: f.expires_while_approved, _expires_while_approved),
    Row("approved", lambda f: f.approved, _approved),
    Row("closed", lambda f: f.closed, _closed),
    Row("being_asked", lambda f: f.state is State.UNKNOWN and f.comes(f.asked_until), _being_asked),
    Row("unanswered", lambda f: f.state is State.UNKNOWN and f.unanswered > 0, _unanswered),
    Row("looked_up", lambda f: f.state is State.UNKNOWN, _looked_up),
    Row("expires", lambda f: f.held and f.comes(f.expires_at), _expires),
    Row("escalates", lambda f: f.clock_runs and f.comes(f.key_window.closes_from), _escalates),
    Row("forgets", lambda f: f.clock_runs and f.key_window.protection is Protection.CLOSING, _forgets),
    Row("snoozed", lambda f: f.comes(f.snoozed_until), _wakes),
    Row(
        "expired",
        lambda f: f.held and f.expires_at is not None,
        _waits("It can no longer be approved: it stays here until it is rejected or relinked."),
    ),
    Row("held", lambda f: f.held, _waits("Nothing is sent; it stays here.")),
    Row(
        "contradicted",
        lambda f: f.evidence_only or f.state in FINAL,
        _waits("Nothing changes until a person decides."),
    ),
    Row(
        "for_a_person",
        lambda _: True,
        _waits("Nothing is sent. Only a late receipt or a record found at the provider settles it."),
    ),
)
