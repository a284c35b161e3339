"""Runs: their budgets and checkpoints."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Router
from ninja.responses import Status

from ledger.ingest.answers import RunAnswer
from ledger.ingest.auth import KeyWithVerb
from ledger.ingest.bodies import StrictBody
from ledger.ingest.calls import OBJECT_PROBLEMS, READ_PROBLEMS, call_verb, key_of, tenant_of
from ledger.ingest.errors import Problem
from ledger.ingest.fields import run_name_problem
from ledger.ingest.schemas import CheckpointBody, OpenRunBody, UsageBody
from ledger.ingest.shapes import checkpoint_line, mark_replayed, run_answer
from ledger.ingest.views_attempts import amounts_of
from ledger.lifecycle import (
    CheckpointNotGrowing,
    UnknownObject,
    open_run,
    record_run_checkpoint,
    record_usage,
)
from ledger.lifecycle.runs import OF_ATTEMPT
from ledger.models import RunCheckpoint
from ledger.queries.for_agents import run_named

router = Router(tags=["runs"])


@router.put(
    "/runs/{run}",
    auth=KeyWithVerb("ingest"),
    response={200: RunAnswer, 201: RunAnswer, **OBJECT_PROBLEMS},
)
def put_run(
    request: HttpRequest, response: HttpResponse, run: str, body: Annotated[OpenRunBody, StrictBody()]
) -> Status[RunAnswer]:
    """Open a run with its limits, or open it again with the same ones or with none."""
    problem = run_name_problem(run)
    if problem:
        raise Problem("invalid-request", f"The name of the run {problem}.")
    limits = body.limits.by_unit
    answer = call_verb(open_run, key=key_of(request), name=run, limits=limits)
    if limits and not answer.matches:
        raise Problem("run-limits-fixed")
    mark_replayed(response, replayed=not answer.created)
    return Status(201 if answer.created else 200, run_answer(answer.run))


@router.get("/runs/{run}", auth=KeyWithVerb("read"), response={200: RunAnswer, **READ_PROBLEMS})
def get_run(request: HttpRequest, run: str) -> RunAnswer:
    """A run with what is left of its budget and its newest checkpoint."""
    found = run_named(tenant_of(request), _checked_name(run))
    if found is None:
        raise UnknownObject
    return run_answer(found)


@router.post("/runs/{run}/usage", auth=KeyWithVerb("ingest"), response={200: RunAnswer, **OBJECT_PROBLEMS})
def post_usage(
    request: HttpRequest, response: HttpResponse, run: str, body: Annotated[UsageBody, StrictBody()]
) -> RunAnswer:
    """Count what was used outside any attempt, once per usage_id."""
    if body.usage_id.startswith(OF_ATTEMPT):
        raise Problem("invalid-request", f"/usage_id: {OF_ATTEMPT} begins what outcomes report.")
    answer = call_verb(
        record_usage,
        key=key_of(request),
        name=_checked_name(run),
        usage_id=body.usage_id,
        amounts=amounts_of(body.usage),
    )
    if not answer.matches:
        raise Problem("usage-id-reused")
    mark_replayed(response, replayed=answer.replayed)
    return run_answer(answer.run)


@router.put(
    "/runs/{run}/checkpoint", auth=KeyWithVerb("ingest"), response={200: RunAnswer, **OBJECT_PROBLEMS}
)
def put_checkpoint(
    request: HttpRequest, response: HttpResponse, run: str, body: Annotated[CheckpointBody, StrictBody()]
) -> RunAnswer:
    """Store where the run can go on from. The sequence must grow."""
    try:
        answer = call_verb(
            record_run_checkpoint, key=key_of(request), name=_checked_name(run), **body.model_dump()
        )
    except CheckpointNotGrowing as behind:
        raise _you_are_behind(behind.newest) from None
    mark_replayed(response, replayed=answer.replayed)
    return run_answer(answer.run)


def _you_are_behind(newest: RunCheckpoint) -> Problem:
    detail = f"You are behind: the last known run checkpoint is {newest.sequence}, {newest.reference}."
    return Problem("checkpoint-not-growing", detail, facts={"checkpoint": checkpoint_line(newest)})


def _checked_name(run: str) -> str:
    """A name a run could have. Raises `UnknownObject` for any other text."""
    if run_name_problem(run):
        raise UnknownObject
    return run
