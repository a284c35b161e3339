"""What is reported and found out about the model's operation, as the domain says what follows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.ledger.lifecycle.machine.model import Operation
from tests.ledger.lifecycle.machine.values import FINAL, Answer, Tried

NOTHING = {"absent", "nothing_happened"}
RECEIPT_IS_EVIDENCE = {"hash_mismatch", "reversed", "several", "conflict"}


@dataclass(frozen=True)
class Said:
    """A report. `definite`: it names an error class that can know that nothing happened."""

    outcome: str  # succeeded, failed, unknown
    result: str = ""
    request: str = ""
    definite: bool = False
    retryable: bool = False
    tool_calls: int = 0

    @property
    def named(self) -> set[str]:
        return {self.result, self.request} - {""}

    @property
    def success(self) -> bool:
        return self.outcome == "succeeded"


@dataclass(frozen=True)
class Seen:
    """A look-up's answer: found, absent, unavailable, adapter_failed or no_lookup."""

    kind: str
    records: tuple[tuple[str, str, str], ...] = ()  # reference, content, state


def report(op: Operation, a: Tried, said: Said) -> None:
    """The agent says what became of an attempt."""
    trusted, before = op.world.key_live, a.state
    follows = _judge(op, a, said) if trusted else "lose" if a.state == "DISPATCHED" else "evidence"
    if said.success or said.request:
        op.void_all()
    if trusted and said.success:
        a.said_success |= before not in FINAL
        a.said_calls = said.tool_calls or a.said_calls
    if trusted and said.request and not a.request:
        a.request, a.positive = said.request, True
    _settle(op, a, said, follows)


def name_request(op: Operation, a: Tried, request: str) -> None:
    """The provider's request id, told as soon as it is known."""
    trusted, said = op.world.key_live, Said("unknown", request=request)
    follows = _judge(op, a, said) if trusted else "lose" if a.state == "DISPATCHED" else "evidence"
    if trusted and follows == "lose":
        follows = "evidence"
    op.void_all()
    if trusted and not a.request:
        a.request, a.positive = request, True
    _settle(op, a, said, follows)


def _judge(op: Operation, a: Tried, said: Said) -> str:
    confirmed = op.confirmed
    same_effect = confirmed is not None and bool(confirmed.own & said.named)
    second = bool(a.request and said.request and said.request not in a.own)
    if a.state in FINAL:
        return _judge_final(a, said, second) if not same_effect else "evidence"
    if not a.sent:
        return "no_effect" if said.definite else "without_leave"
    if confirmed and said.success and said.named:
        return "same_effect" if same_effect else "conflict"
    if second:
        return "conflict"
    if said.success:
        return _judge_success(op, a, said)
    if said.definite and not (a.said_success or a.positive) and a.state in ("DISPATCHED", "UNKNOWN"):
        again = said.retryable and not (op.cancelled or a.closed)
        return "retryable" if again else "no_effect"
    if a.state == "FAILED_RETRYABLE" and a.by_absent and said.named and not said.definite:
        return "conflict"  # the provider had it after all
    return "lose" if a.state == "DISPATCHED" else "evidence"


def _judge_final(a: Tried, said: Said, second: bool) -> str:
    if a.state == "OUTCOME_CONFIRMED":
        contradicts = second or (said.success and bool(said.named))
    else:
        contradicts = second or said.success or not (a.sent or said.definite)
    return "conflict" if contradicts else "evidence"


def _judge_success(op: Operation, a: Tried, said: Said) -> str:
    if a.state == "MANUAL_REVIEW" and a.reason in RECEIPT_IS_EVIDENCE:
        return "evidence"
    if said.named and not op.tool.confirm_by_lookup:
        return "confirm"
    return {"FAILED_RETRYABLE": "conflict", "DISPATCHED": "lose"}.get(a.state, "evidence")


def _settle(op: Operation, a: Tried, said: Said, follows: str) -> None:
    if follows == "without_leave":
        op.void_all()
        op.to_review(a, "without_leave")
        a.maybe_sent, a.settled = True, False
    elif follows == "conflict":
        op.contradict(a, said.named)
    elif follows == "confirm":
        op.confirm(a, name=said.result or said.request)
    elif follows == "same_effect":
        op.go(a, "SUPERSEDED")
    elif follows == "no_effect":
        op.go(a, "FAILED")
        a.reason = ""
    elif follows == "retryable":
        op.go(a, "FAILED_RETRYABLE")
        a.by_absent, a.proven = False, True
    elif follows == "lose":
        op.lose(a)


def look_up(op: Operation, a: Tried, seen: Seen, *, stale: bool) -> None:
    """The provider's answer about an attempt that was sent."""
    before = _before(op, a)
    found = [record for record in dict.fromkeys(seen.records) if not any(b.owns(record) for b in before)]
    nothing = _is_absent(seen, found) and _nothing_happened(op, seen)
    follows = "evidence" if stale else _find(op, a, seen, found, nothing=nothing)
    if not stale:
        a.last_answer = "absent" if nothing else "another"
        a.seen_there = not nothing and any(
            content == "same" and state in ("done", "in_progress") for _, content, state in seen.records
        )
        a.adapter_failures = a.adapter_failures + 1 if seen.kind == "adapter_failed" else 0
        if _is_absent(seen, found) and a.spaced:
            a.negatives, a.spaced = a.negatives + 1, False
    there, sent = (frozenset(b.number for b in op.tried if b.sent or every) for every in (True, False))
    failed = frozenset(name for name, _, state in seen.records if state == "failed")
    a.answers.append(Answer(failed, nothing and not stale, there, sent))
    if found:
        op.void_all()
        a.positive = a.positive or a.state not in FINAL
    _apply(op, a, follows, found)


@dataclass(frozen=True)
class Before:
    """An attempt before another one, with what tells its records from the other's. `absent`: its last look-up
    before the other was sent proved that nothing had happened."""

    tried: Tried
    named: set[str]
    failed: set[str]
    absent: bool

    def owns(self, record: tuple[str, str, str]) -> bool:
        return record[0] in self.named or (record[2] == "failed" and record[0] in self.failed)

    def is_told(self, shown: set[str]) -> bool:
        b = self.tried
        nothing_there = self.absent or b.by_absent or not b.sent or b.state == "OUTCOME_CONFIRMED"
        return nothing_there or bool(self.failed or self.named & shown)


def _before(op: Operation, a: Tried) -> list[Before]:
    known: set[str] = set()
    before = []
    for b in op.tried[: a.number - 1]:
        answers = [answer for answer in b.answers if answer.before(a)]
        failed = _failed_of(answers) - known
        known |= b.own | failed
        absent = b.settled and bool(answers) and answers[-1].absent
        before.append(Before(b, b.own - a.own, failed - b.own - a.own, absent))
    return before


def _failed_of(answers: Iterable[Answer]) -> set[str]:
    return {reference for answer in answers for reference in answer.failed}


def _may_be_of_another(op: Operation, a: Tried, reference: str, seen: Seen) -> bool:
    """Can the record that failed there not be told from one that an earlier attempt may have left?"""
    before, shown = _before(op, a), {name for name, _, _ in seen.records}
    had_it = any(reference in b.tried.own | _failed_of(b.tried.answers) for b in before)
    return (reference not in a.own or had_it) and not all(b.is_told(shown) for b in before)


def _is_absent(seen: Seen, found: list[tuple[str, str, str]]) -> bool:
    return seen.kind in ("absent", "found") and not found


def _nothing_happened(op: Operation, seen: Seen) -> bool:
    """Did what is there fail, or is it confirmed?"""
    confirmed = op.confirmed.own if op.confirmed else set()
    return all(state == "failed" or reference in confirmed for reference, _, state in seen.records)


def _find(op: Operation, a: Tried, seen: Seen, found: list[tuple[str, str, str]], *, nothing: bool) -> str:
    if a.state == "UNKNOWN":
        first = _find_first(op, a, seen, found) or _find_of_it(op, a, seen, found)
        return first or _find_absent(op, a, nothing=nothing)
    existing = _find_of_it(op, a, seen, found)
    may = a.state in ("MANUAL_REVIEW", "FAILED_RETRYABLE") and existing != "in_progress"
    return (existing if may else "") or "evidence"


def _find_first(op: Operation, a: Tried, seen: Seen, found: list[tuple[str, str, str]]) -> str:
    """What decides before it is asked what exists."""
    if op.tool.read:
        return "nothing_happened"
    if seen.kind == "no_lookup":
        return "review no_lookup"
    if seen.kind == "adapter_failed":
        return "review adapter" if a.adapter_failures >= 2 else "stay"
    if seen.kind == "unavailable":
        return "stay"
    early = _is_absent(seen, found) and not (a.settled and a.negatives + int(a.spaced) >= 2)
    if early or _find_existing(found) == "in_progress":
        a.checks += 1
        return "review unresolved" if a.checks >= op.tool.max_checks else "stay"
    return ""


def _find_of_it(op: Operation, a: Tried, seen: Seen, found: list[tuple[str, str, str]]) -> str:
    existing = _find_existing(found)
    if existing != "failed_there" or not _may_be_of_another(op, a, found[0][0], seen):
        return existing
    return "evidence" if a.state == "MANUAL_REVIEW" else "review unresolved"


def _find_existing(found: list[tuple[str, str, str]]) -> str:
    if len(found) > 1:
        return "review several"
    if not found:
        return ""
    (_, content, state) = found[0]
    if content == "other":
        return "review hash_mismatch"
    return {"reversed": "review reversed", "failed": "failed_there", "done": "confirm"}.get(state, state)


def _find_absent(op: Operation, a: Tried, *, nothing: bool) -> str:
    """Nothing of it is there: the rows in the domain's order. `nothing`: of no other attempt either."""
    world = op.world
    refused = not (world.key_live and world.tenant_active) or world.rule != a.rule
    rows = (
        (a.positive or a.said_success or not nothing, "review conflict"),
        (op.cancelled or a.closed, "absent"),
        (not op.tool.idempotent, "review not_idempotent"),
        (not a.dispatched, "review key_window"),  # nobody knows since when the provider has its key
        (refused, "review authority"),
        (op.sends() >= op.tool.max_attempts, "review attempts"),
        (op.ever_held(a), "review approval"),
    )
    return next((row for holds, row in rows if holds), "absent")


def _apply(op: Operation, a: Tried, follows: str, found: list[tuple[str, str, str]]) -> None:
    if follows.startswith("review "):
        op.to_review(a, follows.removeprefix("review "))
    elif follows == "confirm":
        op.happened(a, found[0][0])
    elif follows == "failed_there" or (follows in NOTHING and (op.cancelled or a.closed)):
        op.go(a, "FAILED")
        a.reason = "" if follows == "failed_there" or op.cancelled else "rejected"
    elif follows in NOTHING:
        op.go(a, "FAILED_RETRYABLE")
        a.by_absent = follows == "absent"
    elif follows == "evidence" and a.state in FINAL | {"FAILED_RETRYABLE"}:
        strange = [record for record in found if not _agrees(op, a, record)]
        if strange:
            op.contradict(a, *({record[0]} for record in strange))


def _agrees(op: Operation, a: Tried, record: tuple[str, str, str]) -> bool:
    reference, content, state = record
    if op.confirmed is not None and reference in op.confirmed.own:
        return content == "same" and state in ("done", "in_progress")
    return a.state == "FAILED" and state == "failed"
