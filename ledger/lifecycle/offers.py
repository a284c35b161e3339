"""What the ledger's facts allow a person to do about an item, each with its consequence in one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from ledger.approvals import Binding, binding_of, open_votes
from ledger.authority import key_window_ends_at
from ledger.lifecycle.approving import why_not_approvable
from ledger.lifecycle.case import Case, unlocked_case
from ledger.lifecycle.values import DecisionRefused
from ledger.models import Attempt, ReviewItem
from ledger.policies import InForce, rule_of, rule_of_next_send
from ledger.rules.states import FINAL, OPEN_QUESTION, State
from ledger.rules.vocabulary import DecisionKind, ReviewReason


@dataclass(frozen=True)
class Offer:
    """One decision: possible where `refused` is empty, with what it would do."""

    kind: DecisionKind
    refused: tuple[str, ...]
    consequence: str


def offers_for(item: ReviewItem) -> tuple[Offer, ...]:
    """Every decision about this item, read without a lock: what a page may show. The verbs ask again."""
    case = unlocked_case(item.operation)
    attempt = case.attempt(item.attempt_id)
    return tuple(
        Offer(kind, _closed(item, kind, attempt) or refused(case, attempt), consequence(case, attempt))
        for kind, refused, consequence in _rows(item, attempt)
    )


def _rows(item: ReviewItem, attempt: Attempt) -> tuple[Row, ...]:
    """A contradicted final state is only decided as a conflict; any other one in every way."""
    if item.reason != ReviewReason.CONFLICTING_EVIDENCE:
        return _ROWS
    return _CONFLICT_ROWS if attempt.is_final else (*_ROWS, _DUPLICATE)


Refusals = Callable[[Case, Attempt], tuple[str, ...]]
Consequence = Callable[[Case, Attempt], str]
Row = tuple[DecisionKind, Refusals, Consequence]


def _closed(item: ReviewItem, kind: DecisionKind, attempt: Attempt) -> tuple[str, ...]:
    waits_for_agent = attempt.state == State.INTENT_RECORDED and kind is DecisionKind.APPROVE
    return () if item.closed_at is None or waits_for_agent else ("This item is closed.",)


def _approvable(case: Case, attempt: Attempt) -> tuple[str, ...]:
    refused = why_not_approvable(case, attempt)
    return _words(refused) if refused else ()


def _words(refused: DecisionRefused) -> tuple[str, ...]:
    return refused.reasons or (refused.message,)


def _open_question(_case: Case, attempt: Attempt) -> tuple[str, ...]:
    return () if attempt.state in OPEN_QUESTION else (f"The attempt is {attempt.state}.",)


def _sent_question(case: Case, attempt: Attempt) -> tuple[str, ...]:
    if not attempt.was_sent:
        return ("Nothing was sent: there is nothing to find out.",)
    return _open_question(case, attempt)


def _recheckable(case: Case, attempt: Attempt) -> tuple[str, ...]:
    if not rule_of(attempt).has_lookup:
        return ("The tool has no look-up.",)
    return _sent_question(case, attempt)


def _correctable(case: Case, attempt: Attempt) -> tuple[str, ...]:
    if attempt.args_bytes is None:
        return ("Only the hash of its arguments is known.",)
    if case.confirmed is not None:
        return ("An attempt is confirmed: it was done.",)
    variant = case.held_variant()
    if variant is not None and variant.pk != attempt.pk:
        return ("Another attempt with other arguments is held: decide that one first.",)
    return _open_question(case, attempt)


def _approve_consequence(case: Case, attempt: Attempt) -> str:
    binding = binding_of(attempt)
    if binding is None:
        return "The policy refuses this tool."
    votes = len(open_votes(attempt, case.now))
    who = _votes_line(binding, votes)
    by_ledger = rule_of_next_send(attempt, InForce(binding.policy, binding.rule)).executor == "ledger"
    if not attempt.was_sent:
        when = "at once, by the ledger itself" if by_ledger else "once its agent asks for leave"
        return f"Sends the first provider call {when}. {who}"
    whose = "The ledger itself sends" if by_ledger else "Sends"
    return f"{whose} 1 new provider call with the same key as before; {_key_line(case, attempt)}. {who}"


def _votes_line(binding: Binding, votes: int) -> str:
    if binding.needed == 1:
        return "Your approval is enough."
    return f"Needs {binding.needed} people; {votes} so far."


def _key_line(case: Case, attempt: Attempt) -> str:
    rule = rule_of(attempt)
    ends_at = key_window_ends_at(attempt, rule)
    if not rule.idempotent:
        return "the provider honours no keys, so nothing protects from a second effect"
    if ends_at is None or ends_at <= case.now:
        return "the provider has forgotten the key, so nothing protects from a second effect"
    return f"the provider honours keys for {span(rule.key_ttl_s)}, {span_until(ends_at, case.now)} left"


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
        return "Nothing is sent, now or later: the attempt becomes FAILED."
    return "No new send of this attempt, ever. You say what became of the one that was sent."


def _line(text: str) -> Consequence:
    return lambda _case, _attempt: text


def _correct_consequence(_case: Case, attempt: Attempt) -> str:
    stays = "stays as it is, and must be settled before" if attempt.was_sent else "is replaced before"
    return (
        f"Opens a new held attempt with the arguments you type; this one {stays} the new one can be approved."
    )


def _undecided(case: Case, _attempt: Attempt) -> tuple[str, ...]:
    return ("Another attempt is confirmed already.",) if case.confirmed is not None else ()


def _duplicate(case: Case, attempt: Attempt) -> tuple[str, ...]:
    other = case.confirmed is not None and case.confirmed.pk != attempt.pk
    return () if other else ("No other attempt is confirmed.",)


def _stands(_case: Case, attempt: Attempt) -> tuple[str, ...]:
    return () if attempt.state in FINAL else ("There is no final state to keep.",)


_ROWS: tuple[Row, ...] = (
    (DecisionKind.APPROVE, _approvable, _approve_consequence),
    (DecisionKind.REJECT, _open_question, _reject_consequence),
    (
        DecisionKind.CONFIRM_HAPPENED,
        _sent_question,
        _line("Records that it happened, with the provider's reference you give. Sends nothing."),
    ),
    (
        DecisionKind.CONFIRM_DID_NOT,
        _sent_question,
        _line("Records on your word that it did not happen: FAILED for ever. Sends nothing."),
    ),
    (DecisionKind.RECHECK, _recheckable, _line("Asks the provider once more, now. Sends nothing.")),
    (DecisionKind.RELINK_ARGUMENTS, _correctable, _correct_consequence),
    (
        DecisionKind.RELINK_RECORD,
        _sent_question,
        _line("Ties this attempt to the provider's record you name and looks it up at once. Sends nothing."),
    ),
)

_DUPLICATE: Row = (
    DecisionKind.CONFLICT_DUPLICATE,
    _duplicate,
    _line("Records that the effect happened twice; both references are kept. Sends nothing."),
)

_CONFLICT_ROWS: tuple[Row, ...] = (
    (
        DecisionKind.CONFLICT_HAPPENED,
        _undecided,
        _line("Records that this attempt happened after all, with the reference you give. Sends nothing."),
    ),
    _DUPLICATE,
    (
        DecisionKind.CONFLICT_STANDS,
        _stands,
        _line("Keeps the state as it is, with your reason. Sends nothing."),
    ),
)
