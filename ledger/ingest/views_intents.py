"""Intents: what is to happen, written down before anything is sent."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Router
from ninja.responses import Status

from ledger.ingest.answers import StandingAnswer
from ledger.ingest.auth import Call, KeyWithVerb
from ledger.ingest.bodies import StrictBody
from ledger.ingest.calls import BODY_PROBLEMS, call_verb, key_of, problem_about, tenant_of
from ledger.ingest.errors import Problem
from ledger.ingest.schemas import IntentBody
from ledger.ingest.shapes import mark_replayed, mark_retry_after, standing_answer
from ledger.lifecycle import Intent, IntentAnswer, IntentKind, Standing, record_intent
from ledger.models import User
from ledger.queries.for_agents import knows_operation_key, person_of_tenant
from ledger.rules.authority import as_told
from ledger.rules.canonical import canonical_bytes, content_hash
from ledger.rules.directive import Directive

router = Router(tags=["intents"])


@router.post(
    "/intents",
    auth=KeyWithVerb("ingest", Call.ASKS_AUTHORITY),
    response={200: StandingAnswer, 201: StandingAnswer, 202: StandingAnswer, **BODY_PROBLEMS},
)
def post_intent(
    request: HttpRequest, response: HttpResponse, body: Annotated[IntentBody, StrictBody()]
) -> Status[StandingAnswer]:
    """Record one side effect before it is sent, or learn where it stands. 202: a person must decide first."""
    intent = read_intent(body, requested_by=_person(tenant_of(request), body.requested_by))
    known = knows_operation_key(tenant_of(request), body.operation_key)
    answer = call_verb(record_intent, key=key_of(request), intent=intent)
    standing = _checked(request, answer)
    mark_retry_after(response, standing)
    mark_replayed(response, replayed=known and answer.kind is not IntentKind.CREATED)
    return Status(_status(answer), standing_answer(request, standing))


def read_intent(body: IntentBody, *, requested_by: User | None) -> Intent:
    """The intent with its canonical bytes and their hash."""
    args_bytes = None if body.args is None else canonical_bytes(body.args)
    return Intent(
        operation_key=body.operation_key,
        tool=body.tool,
        args_hash=_hash(args_bytes, body.args_hash),
        args_bytes=args_bytes,
        args=body.args,
        run=body.run or "",
        step=body.step or "",
        task_id=body.task_id or "",
        actor=body.actor or "",
        requested_by=requested_by,
        retry_of=body.retry_of or "",
        expires_at=body.expires_at,
    )


def _hash(args_bytes: bytes | None, given: str | None) -> str:
    if args_bytes is None:
        if given is None:
            raise Problem("args-required", "The intent carries neither args nor args_hash.")
        return given
    computed = content_hash(args_bytes)
    if given not in {None, computed}:
        raise Problem("args-hash-mismatch", f"The canonical bytes of args hash to {computed}.")
    return computed


def _person(tenant_id: int, named: str | None) -> User | None:
    if named is None:
        return None
    person = person_of_tenant(tenant_id, named)
    if person is None:
        raise Problem("unknown-person")
    return person


def _checked(request: HttpRequest, answer: IntentAnswer) -> Standing:
    standing = answer.standing
    if answer.kind is IntentKind.ARGS_REQUIRED:
        raise Problem("args-required", f"The intent needs args, not a hash: {answer.problem}.")
    if answer.kind is IntentKind.COST_UNREADABLE:
        raise Problem("cost-unreadable", f"The rule takes the cost from the arguments: {answer.problem}.")
    if answer.kind is IntentKind.REFUSED or standing is None:
        raise Problem(answer.reasons[0].value, facts=as_told(answer.reasons))
    if answer.kind is IntentKind.KEY_REUSED:
        raise problem_about("idempotency-key-reused", request, standing)
    return standing


def _status(answer: IntentAnswer) -> int:
    """A held intent is answered alike each time it is posted."""
    standing = answer.standing
    held = standing is not None and standing.attempt.is_held and standing.directive is Directive.HOLD
    if answer.kind is IntentKind.HELD or held:
        return 202
    return 201 if answer.kind is IntentKind.CREATED else 200
