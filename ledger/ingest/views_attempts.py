"""Attempts: leave to send, the send lease, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Router
from ninja.responses import Status

from ledger.ingest import answers
from ledger.ingest.auth import Call, KeyWithVerb
from ledger.ingest.bodies import StrictBody
from ledger.ingest.calls import (
    BODY_PROBLEMS,
    FACT_PROBLEMS,
    OBJECT_PROBLEMS,
    call_verb,
    checked_id,
    key_of,
    problem_about,
    tell_fact,
    tenant_of,
)
from ledger.ingest.errors import Problem
from ledger.ingest.problems import PROBLEMS
from ledger.ingest.schemas import (
    AmountsBody,
    EarlyOutcomeBody,
    HeartbeatBody,
    LeaveBody,
    OutcomeBody,
    ProviderRequestBody,
    RecoverBody,
)
from ledger.ingest.shapes import (
    leave_answer,
    mark_replayed,
    mark_retry_after,
    standing_answer,
    standing_fields,
)
from ledger.lifecycle import (
    Kept,
    LeaveGiven,
    LeaveProblem,
    LeaveRefused,
    OutcomeReport,
    Standing,
    Told,
    declare_worker_dead,
    extend_lease,
    give_leave,
    standing_of,
    take_outcome,
    take_provider_request,
)
from ledger.queries.arguments import stored_args
from ledger.queries.for_agents import knows_request_id
from ledger.rules.amounts import Amount
from ledger.rules.authority import Reason, as_told

_TakenOutcome = Status[answers.OutcomeAnswer] | Status[answers.ParkedAnswer]

router = Router(tags=["attempts"])


@router.post(
    "/attempts/{attempt_id}/dispatch",
    auth=KeyWithVerb("ingest", Call.ASKS_AUTHORITY),
    response={200: answers.LeaveAnswer, **OBJECT_PROBLEMS},
)
def post_dispatch(
    request: HttpRequest, response: HttpResponse, attempt_id: str, body: Annotated[LeaveBody, StrictBody()]
) -> answers.LeaveAnswer:
    """Ask for leave. Only a 200 authorises sending, only its arguments; report on the attempt it names."""
    answer = call_verb(
        _leave_and_standing,
        key=key_of(request),
        attempt_id=checked_id(attempt_id),
        worker_id=body.worker_id,
        leave_id=body.leave_id or body.worker_id,
        args_hash=body.args_hash,
    )
    if isinstance(answer, LeaveRefused):
        raise _no_leave(request, answer)
    leave, standing = answer
    mark_replayed(response, replayed=leave.replayed)
    return leave_answer(request, standing)


def _leave_and_standing(**asked: Any) -> LeaveRefused | tuple[LeaveGiven, Standing]:
    """Read in the transaction that gives leave: a moment later the attempt may have gone on."""
    answer = give_leave(**asked)
    return answer if isinstance(answer, LeaveRefused) else (answer, standing_of(answer.attempt))


def _no_leave(request: HttpRequest, refused: LeaveRefused) -> Problem:
    authority = refused.problem is LeaveProblem.NOT_AUTHORISED
    slug = refused.reasons[0].value if authority else refused.problem.value
    facts: dict[str, object] = {**as_told(refused.reasons)} if refused.reasons else {}
    if refused.because:
        facts["because"] = list(refused.because)
    if refused.may_read:
        facts["args"] = stored_args(refused.standing.attempt)
    return problem_about(
        slug,
        request,
        refused.standing,
        detail=_in_figures(slug, refused),
        facts=facts,
        retry_after_s=refused.retry_after_s,
    )


def _in_figures(slug: str, refused: LeaveRefused) -> str:
    """The kind's own explanation, and which limit of the run it is."""
    if slug != Reason.BUDGET_EXHAUSTED:
        return ""
    return f"{PROBLEMS[slug].explanation} {'; '.join(refused.because)}."


@router.post(
    "/attempts/{attempt_id}/heartbeat",
    auth=KeyWithVerb("ingest", Call.EXTENDS),
    response={200: answers.LeaseAnswer, **OBJECT_PROBLEMS},
)
def post_heartbeat(
    request: HttpRequest, attempt_id: str, body: Annotated[HeartbeatBody, StrictBody()]
) -> answers.LeaseAnswer:
    """Say that a long send still goes on, and get more time for it, up to 20 send leases in all."""
    lease_until = call_verb(
        extend_lease,
        key=key_of(request),
        attempt_id=checked_id(attempt_id),
        worker_id=body.worker_id,
        lease_epoch=body.lease_epoch,
    )
    if lease_until is None:
        raise Problem("stale-lease", attempt_id=attempt_id)
    return answers.LeaseAnswer(attempt_id=attempt_id, lease_until=lease_until, lease_epoch=body.lease_epoch)


@router.post(
    "/attempts/{attempt_id}/provider-request",
    auth=KeyWithVerb("ingest", Call.REPORT),
    response={200: answers.StandingAnswer, 202: answers.ParkedAnswer, **FACT_PROBLEMS},
)
def post_provider_request(
    request: HttpRequest,
    response: HttpResponse,
    attempt_id: str,
    body: Annotated[ProviderRequestBody, StrictBody()],
) -> Status[answers.StandingAnswer] | Status[answers.ParkedAnswer]:
    """Store the provider's own id of the request the moment it is known. 202: kept until its attempt is."""
    known = knows_request_id(tenant_of(request), attempt_id, body.provider_request_id)
    answer = tell_fact(
        take_provider_request,
        key=key_of(request),
        told=Told(checked_id(attempt_id), body.operation_key or ""),
        worker_id=body.worker_id,
        provider_request_id=body.provider_request_id,
    )
    if isinstance(answer, Kept):
        return _parked(response, answer)
    mark_retry_after(response, answer)
    mark_replayed(response, replayed=known)
    return Status(200, standing_answer(request, answer))


@router.post(
    "/attempts/{attempt_id}/outcome",
    auth=KeyWithVerb("ingest", Call.REPORT),
    response={200: answers.OutcomeAnswer, 202: answers.ParkedAnswer, **FACT_PROBLEMS},
)
def post_outcome(
    request: HttpRequest, response: HttpResponse, attempt_id: str, body: Annotated[OutcomeBody, StrictBody()]
) -> _TakenOutcome:
    """Report what is known about a send. It is always kept; the state that followed is in the answer. 202:
    this tenant does not know the attempt; the report is joined to it when it appears."""
    told = Told(checked_id(attempt_id), body.operation_key or "")
    return _take_outcome(request, response, told, read_report(body))


@router.post(
    "/outcomes",
    auth=KeyWithVerb("ingest", Call.REPORT),
    response={200: answers.OutcomeAnswer, 202: answers.ParkedAnswer, **FACT_PROBLEMS},
)
def post_early_outcome(
    request: HttpRequest, response: HttpResponse, body: Annotated[EarlyOutcomeBody, StrictBody()]
) -> _TakenOutcome:
    """Report an outcome of which only the operation's key is known, as a provider's callback may come before
    the intent. 202: there is no such operation yet; the report is joined to it when its intent is posted."""
    return _take_outcome(request, response, Told(operation_key=body.operation_key), read_report(body))


def _take_outcome(
    request: HttpRequest, response: HttpResponse, told: Told, report: OutcomeReport
) -> _TakenOutcome:
    answer = tell_fact(take_outcome, key=key_of(request), told=told, report=report)
    if isinstance(answer, Kept):
        return _parked(response, answer)
    mark_retry_after(response, answer.standing)
    mark_replayed(response, replayed=answer.replayed)
    fields = standing_fields(request, answer.standing)
    return Status(200, answers.OutcomeAnswer(**fields, evidence_only=answer.evidence_only))


def _parked(response: HttpResponse, kept: Kept) -> Status[answers.ParkedAnswer]:
    """The same answer whether the id is another tenant's or nobody's."""
    mark_replayed(response, replayed=kept.replayed)
    return Status(202, answers.ParkedAnswer())


def read_report(body: OutcomeBody | EarlyOutcomeBody) -> OutcomeReport:
    """The report as it was posted."""
    return OutcomeReport(
        worker_id=body.worker_id,
        outcome=body.outcome,
        result_ref=body.result_ref or "",
        provider_request_id=body.provider_request_id or "",
        no_effect=body.no_effect,
        retryable=body.retryable,
        error_class=body.error.class_ if body.error else "",
        message=body.error.message if body.error else "",
        usage=amounts_of(body.usage),
        args_hash=body.args_hash or "",
        occurred_at=body.occurred_at.isoformat() if body.occurred_at else "",
    )


def amounts_of(body: AmountsBody | None) -> Mapping[str, Amount]:
    """The units that were named, with their amounts."""
    return {} if body is None else body.by_unit


@router.post(
    "/recover",
    auth=KeyWithVerb("ingest"),
    response={200: answers.RecoverAnswer, **BODY_PROBLEMS},
)
def post_recover(request: HttpRequest, body: Annotated[RecoverBody, StrictBody()]) -> answers.RecoverAnswer:
    """Say that a process of this agent is dead: what it was sending becomes UNKNOWN at once."""
    found = call_verb(declare_worker_dead, key=key_of(request), worker_id=body.worker_id)
    return answers.RecoverAnswer(attempts=[standing_answer(request, standing) for standing in found])
