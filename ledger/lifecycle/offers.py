"""What the ledger's facts allow a person to do about an item, each with its consequence in one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from ledger.approvals import Binding, binding_of, open_votes
from ledger.authority import key_window_of
from ledger.lifecycle.case import Case, unlocked_case
from ledger.lifecycle.possible import is_closed_to, why_not
from ledger.lifecycle.statements import needed_for, standing_statements
from ledger.models import Attempt, ReviewItem
from ledger.policies import InForce, rule_of, rule_of_next_send
from ledger.rules.key_window import KeyWindow, Protection
from ledger.rules.statements import Says
from ledger.rules.states import State
from ledger.rules.vocabulary import DecisionKind, ReviewReason


@dataclass(frozen=True)
class Offer:
    """One decision: possible where `refused` is empty, with what it would do."""

    kind: DecisionKind
    refused: tuple[str, ...]
    consequence: str


Consequence = Callable[[Case, Attempt], str]


def offers_for(item: ReviewItem) -> tuple[Offer, ...]:
    """Every decision about this item, read without a lock: what a page may show. The verbs ask again."""
    case = unlocked_case(item.operation)
    attempt = case.attempt(item.attempt_id)
    return tuple(
        Offer(kind, _refused(kind, case, item), _CONSEQUENCES[kind](case, attempt))
        for kind in _kinds(item, attempt)
    )


def _kinds(item: ReviewItem, attempt: Attempt) -> tuple[DecisionKind, ...]:
    """A contradicted final state is only decided as a conflict; any other one in every way."""
    if item.reason == ReviewReason.SUSPECTED_DUPLICATE:
        return (DecisionKind.INTENDED_REPEAT, *_ORDINARY)
    if item.reason != ReviewReason.CONFLICTING_EVIDENCE:
        return _ORDINARY
    return _CONFLICT if attempt.is_final else (*_ORDINARY, DecisionKind.CONFLICT_DUPLICATE)


def _refused(kind: DecisionKind, case: Case, item: ReviewItem) -> tuple[str, ...]:
    if is_closed_to(kind, case, item):
        return ("This item is closed.",)
    refused = why_not(kind, case, case.attempt(item.attempt_id))
    return () if refused is None else refused.reasons or (refused.message,)


def _approve_consequence(case: Case, attempt: Attempt) -> str:
    window = key_window_of(attempt, rule_of(attempt), case.now)
    binding = binding_of(attempt, window)
    if binding is None:
        return "The policy refuses this tool."
    votes = len(open_votes(attempt, case.now))
    who = _votes_line(binding, votes)
    by_ledger = rule_of_next_send(attempt, InForce(binding.policy, binding.rule)).executor == "ledger"
    if not attempt.was_sent:
        when = "at once, by the ledger itself" if by_ledger else "once its agent asks for leave"
        return f"Sends the first provider call {when}. {who}"
    whose = "The ledger itself sends" if by_ledger else "Sends"
    key_line = _key_line(window, case.now + timedelta(seconds=binding.vote_life_s), case.now)
    return f"{whose} 1 new provider call with the same key as before; {key_line}. {who}"


_WITHOUT_WINDOW: Mapping[Protection, str] = {
    Protection.NO_KEYS: "the provider honours no keys, so nothing protects from a second effect",
    Protection.NOT_SENT: "no send with it is known of, so nothing protects from a second effect",
}


def _votes_line(binding: Binding, votes: int) -> str:
    if binding.needed == 1:
        return "Your approval is enough."
    return f"Needs {binding.needed} people; {votes} so far."


def _key_line(window: KeyWindow, votes_until: datetime, now: datetime) -> str:
    """What protects from a second effect, or no longer does, up to when this approval could be used."""
    honours = f"the provider honours keys for {span(window.lasts_s)}"
    if window.ends_at is None:
        return _WITHOUT_WINDOW[window.protection]
    if not window.protects:
        return (
            f"{honours} and forgot this one {span_until(now, window.ends_at)} ago: if the earlier send did "
            "happen, this is a second effect, and nothing prevents it"
        )
    left = f"{honours}, {span_until(window.ends_at, now)} left"
    if window.ends_at >= votes_until:
        return left
    return (
        f"{left}: sent after {window.ends_at:%H:%M:%S} UTC it may be a second effect, and nothing prevents it"
    )


def span(seconds: float) -> str:
    """A length of time in the largest unit that says it: 45 s, 12 min, 3 h, 2 days."""
    for size, unit in ((172_800, "days"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / (86_400 if unit == 'days' else size):.0f} {unit}"
    return f"{seconds:.0f} s"


def span_until(until: datetime, now: datetime) -> str:
    return span(max(0.0, (until - now).total_seconds()))


def _reject_consequence(_case: Case, attempt: Attempt) -> str:
    if not attempt.was_sent:
        approved = " Takes the approval back." if attempt.state == State.INTENT_RECORDED else ""
        return f"Nothing is sent, now or later: the attempt becomes FAILED.{approved}"
    return "No new send of this attempt, ever. You say what became of the one that was sent."


def _line(text: str) -> Consequence:
    return lambda _case, _attempt: text


def _statement(says: Says, alone: str) -> Consequence:
    """Of a dangerous effect one word settles nothing: whose stands already, and what a second one does."""

    def consequence(_case: Case, attempt: Attempt) -> str:
        if not attempt.was_sent or needed_for(attempt) == 1:
            return alone
        others = standing_statements(attempt)
        if not others:
            return f"{alone} Settles nothing until a second person says the same."
        names = " and ".join(f"{one.by.get_username()} says it {_SAYS[Says(one.says)]}" for one in others)
        agrees = any(one.says == says for one in others)
        return f"{alone} {names}: {'a second person settles it' if agrees else 'this contradicts them'}."

    return consequence


_SAYS = {Says.HAPPENED: "happened", Says.DID_NOT: "did not"}


def _correct_consequence(_case: Case, attempt: Attempt) -> str:
    stays = "stays as it is, and must be settled before" if attempt.was_sent else "is replaced before"
    return (
        f"Opens a new held attempt with the arguments you type; this one {stays} the new one can be approved."
    )


_CONSEQUENCES: Mapping[DecisionKind, Consequence] = {
    DecisionKind.APPROVE: _approve_consequence,
    DecisionKind.REJECT: _reject_consequence,
    DecisionKind.CONFIRM_HAPPENED: _statement(
        Says.HAPPENED, "Records that it happened, with the evidence you give. Sends nothing."
    ),
    DecisionKind.CONFIRM_DID_NOT: _statement(
        Says.DID_NOT, "Records on your word that it did not happen: FAILED for ever. Sends nothing."
    ),
    DecisionKind.RECHECK: _line("Asks the provider once more, now. Sends nothing."),
    DecisionKind.RELINK_ARGUMENTS: _correct_consequence,
    DecisionKind.RELINK_RECORD: _line(
        "Ties this attempt to the provider's record you name and looks it up at once. Sends nothing."
    ),
    DecisionKind.RELINK_OPERATION: _line(
        "Ends this attempt: what becomes of the operation you name is its answer, too. Sends nothing."
    ),
    DecisionKind.INTENDED_REPEAT: _line(
        "Records that it is meant to happen once more; it still needs an approval. Sends nothing."
    ),
    DecisionKind.CONFLICT_HAPPENED: _line(
        "Records that this attempt happened after all, with the reference you give. Sends nothing."
    ),
    DecisionKind.CONFLICT_DUPLICATE: _line(
        "Records that the effect happened twice; both references are kept. Sends nothing."
    ),
    DecisionKind.CONFLICT_STANDS: _line("Keeps the state as it is, with your reason. Sends nothing."),
}

_CONFLICT = (
    DecisionKind.CONFLICT_HAPPENED,
    DecisionKind.CONFLICT_DUPLICATE,
    DecisionKind.CONFLICT_STANDS,
)
_ORDINARY = tuple(kind for kind in _CONSEQUENCES if kind not in (*_CONFLICT, DecisionKind.INTENDED_REPEAT))
