"""The ledger's answers as values, and what each of them means for the agent: a value or an error.

Whatever is not exactly as promised is LedgerUnavailable: an answer that cannot be read permits nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from ledger.client.errors import (
    About,
    DuplicateOperation,
    LedgerError,
    LedgerUnavailable,
    PendingReview,
    Refused,
)
from ledger.rules.canonical import canonical_bytes, content_hash

DIRECTIVES = frozenset({"done", "hold", "reconcile", "in_flight", "dispatch", "failed"})

WAITS_FOR_A_PERSON = frozenset({"on-hold", "idempotency-key-reused"})
ON_ITS_WAY = frozenset({"in-flight", "already-done", "ledger-executes", "illegal-transition", "stale-lease"})

NOTHING_SENT = "This call was not executed"


@dataclass(frozen=True)
class Reply:
    """One answer of the ledger: status below 500, its JSON object, how long it asks to be left alone, its
    own time (the HTTP header Date, empty where it said none), and when it was asked, by our clock."""

    status: int
    body: Mapping[str, Any]
    retry_after_s: float | None = None
    date: str = ""
    asked_at_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the ledger says about one attempt; empty where it says nothing. `parked`: the fact is kept, and
    the ledger does not know (yet) what it is about."""

    status: int
    operation_id: str
    attempt_id: str
    state: str
    outcome: str
    args_hash: str
    directive: str
    reason: str
    review_url: str
    result_ref: str | None
    evidence_only: bool
    parked: bool
    retry_after_s: float | None
    body: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Leave:
    """Permission to send exactly `args`, once, until `lease_until`, under `idempotency_key`.

    `lease_s`: how long that was when it was given, by the ledger's own time; `ends_at_s`: its end by our
    clock of spans. None where the ledger said no time.
    """

    operation_id: str
    attempt_id: str
    idempotency_key: str
    correlation_id: str
    args: Mapping[str, Any]
    args_hash: str
    lease_until: str
    lease_epoch: int
    lease_s: float | None = None
    ends_at_s: float | None = None


@dataclass(frozen=True)
class Lengthened:
    """A lease that goes on until `lease_until`; `ends_at_s` as in Leave."""

    lease_until: str
    ends_at_s: float | None


def text(body: Mapping[str, Any], name: str) -> str:
    """The text under this name; empty where there is none."""
    value = body.get(name)
    return value if isinstance(value, str) else ""


def hash_of(args: object) -> str:
    """The args hash of a JSON value. Raises ValueError for what is not JSON."""
    return content_hash(canonical_bytes(args))


def answer_of(reply: Reply) -> Answer:
    """Read an answer about an attempt. Raises the error it stands for when it is a problem."""
    check_no_problem(reply)
    body = reply.body
    names = (
        "operation_id",
        "attempt_id",
        "state",
        "outcome",
        "args_hash",
        "directive",
        "reason",
        "review_url",
    )
    return Answer(
        status=reply.status,
        result_ref=text(body, "result_ref") or None,
        evidence_only=body.get("evidence_only") is True,
        parked=body.get("parked") is True,
        retry_after_s=reply.retry_after_s,
        body=body,
        **{name: text(body, name) for name in names},
    )


def intent_answer_of(reply: Reply) -> Answer:
    """As answer_of; an intent's answer must also carry a directive and name its attempt."""
    answer = answer_of(reply)
    if answer.directive not in DIRECTIVES or not (answer.operation_id and answer.attempt_id):
        raise unreadable("its answer to the intent has no directive that is known")
    return answer


def leave_of(reply: Reply, *, asked_hash: str) -> Leave:
    """Read leave to send what hashes to `asked_hash`. Anything short of exactly that is no leave."""
    check_no_problem(reply)
    body = reply.body
    args, epoch = body.get("args"), body.get("lease_epoch")
    if reply.status != 200 or text(body, "state") not in {"", "DISPATCHED"}:
        raise unreadable("its answer is not leave to send")
    if not isinstance(args, dict) or type(epoch) is not int:
        raise unreadable("its leave carries no arguments or no lease")
    if _hash_or_none(args) != asked_hash or text(body, "args_hash") not in {"", asked_hash}:
        raise unreadable("its leave is for other arguments than were asked for")
    names = ("operation_id", "attempt_id", "idempotency_key", "correlation_id", "lease_until")
    found = {name: text(body, name) for name in names}
    missing = [name for name in names if not found[name]]
    if missing:
        raise unreadable(f"its leave lacks {', '.join(missing)}")
    until = found["lease_until"]
    return Leave(
        args=args,
        args_hash=asked_hash,
        lease_epoch=epoch,
        lease_s=span_s(reply.date, until),
        ends_at_s=end_of(reply, until),
        **found,
    )


def lengthened_of(reply: Reply) -> Lengthened:
    """Read the answer to a heartbeat. Raises the error it stands for when it is a problem."""
    check_no_problem(reply)
    until = text(reply.body, "lease_until")
    return Lengthened(until, end_of(reply, until))


def end_of(reply: Reply, until: str) -> float | None:
    """When a lease until then is over, by our clock of spans, and of a lease of 2 s or more never too late:
    counted from before the ledger was asked. None where the ledger's two times make no span."""
    span = span_s(reply.date, until)
    return None if span is None else reply.asked_at_s + least_s(span)


def least_s(span: float) -> float:
    """How short a span from a Date may really be: a Date is in whole seconds."""
    return max(span - 1, span / 2)


def span_s(date: str, until: str) -> float | None:
    """Seconds from an HTTP date to an RFC 3339 time, both the ledger's; None where one is unreadable."""
    try:
        span = datetime.fromisoformat(until) - parsedate_to_datetime(date)
    except (TypeError, ValueError):
        return None
    return span.total_seconds() if span.total_seconds() > 0 else None


def check_no_problem(reply: Reply) -> None:
    """Raise what a problem answer stands for; return for 200, 201 and 202."""
    if reply.status in {200, 201, 202}:
        return
    if not 400 <= reply.status < 500:
        raise unreadable(f"it answered {reply.status}", status=reply.status)
    raise problem_of(reply)


def problem_of(reply: Reply) -> LedgerError:
    """The error a 4xx answer stands for."""
    about = about_of(reply)
    said = text(reply.body, "detail") or text(reply.body, "title") or f"status {reply.status}"
    if about.slug in WAITS_FOR_A_PERSON and (about.attempt_id or about.operation_id):
        return PendingReview(_pending(about, said), about)
    if about.slug in ON_ITS_WAY:
        return DuplicateOperation(_duplicate(about, said), about)
    return Refused(
        f"{NOTHING_SENT}: the ledger refused it ({_why(about, said)}). Do not call it again.", about
    )


def error_of(answer: Answer) -> LedgerError:
    """The error a directive other than `dispatch` and `done` stands for."""
    about = about_of(Reply(answer.status, answer.body, answer.retry_after_s))
    if answer.directive == "hold":
        return PendingReview(_pending(about, answer.reason), about)
    if answer.directive == "reconcile":
        return DuplicateOperation(_duplicate(about, "the ledger is finding out whether it happened"), about)
    if answer.directive == "in_flight":
        return DuplicateOperation(_duplicate(about, "it is already on its way"), about)
    return Refused(
        f"{NOTHING_SENT}: operation {about.operation_id} is closed as {answer.state}"
        f"{f' ({answer.reason})' if answer.reason else ''} and must not be tried again under this key. "
        "If it is still wanted, it needs a new operation key that names this attempt in retry_of.",
        about,
    )


def unreadable(why: str, *, status: int = 0) -> LedgerUnavailable:
    return LedgerUnavailable(
        f"{NOTHING_SENT}: the ledger could not be relied on ({why}). Without its leave nothing may be sent. "
        "Do not do this by any other way; the same call may be made again later.",
        About(reason=why, status=status),
    )


def about_of(reply: Reply) -> About:
    body = reply.body
    reasons = body.get("reasons")
    listed = ", ".join(map(str, reasons)) if isinstance(reasons, list) else ""
    return About(
        operation_id=text(body, "operation_id"),
        attempt_id=text(body, "attempt_id"),
        slug=slug_of(body) if reply.status >= 400 else "",
        reason=listed or text(body, "reason"),
        review_url=text(body, "review_url"),
        retry_after_s=reply.retry_after_s,
        status=reply.status,
        body=body,
    )


def slug_of(problem: Mapping[str, Any]) -> str:
    """Which of the ledger's kinds of problem this is; empty where it is none of them."""
    before, found, slug = text(problem, "type").rstrip("/").rpartition("/problems/")
    return slug if found and not before else ""


def _hash_or_none(args: object) -> str | None:
    try:
        return hash_of(args)
    except (ValueError, RecursionError):
        return None


def _pending(about: About, why: str) -> str:
    where = f" at {about.review_url}" if about.review_url else ""
    return (
        f"{NOTHING_SENT}. A person must review {about.operation_id or about.attempt_id}{where} first "
        f"({why or about.reason or 'it needs a decision'}). Do not call it again."
    )


def _duplicate(about: About, why: str) -> str:
    when = f" in {about.retry_after_s:g} s or more" if about.retry_after_s else " later"
    named = f"operation {about.operation_id}: " if about.operation_id else ""
    return (
        f"{NOTHING_SENT}: {named}{why}. Do not call it again now and do not do it by any other way. "
        f"To learn the result, ask again{when} with the same operation key."
    )


def _why(about: About, said: str) -> str:
    parts = [part for part in (about.slug, about.reason) if part]
    return ": ".join([*dict.fromkeys(parts), said])
