"""Operations: read them, read their history, withdraw them."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Header, Router

from ledger.ingest import answers
from ledger.ingest.auth import KeyWithVerb
from ledger.ingest.bodies import StrictBody, StrictQuery
from ledger.ingest.calls import (
    OBJECT_PROBLEMS,
    READ_PROBLEMS,
    call_verb,
    checked_id,
    key_of,
    tenant_of,
)
from ledger.ingest.cursors import cursor_after, list_hash, place_in
from ledger.ingest.schemas import CancelBody, EventsPage, OperationFilters
from ledger.ingest.shapes import (
    event_line,
    mark_replayed,
    mark_retry_after,
    operation_answer,
    standing_answer,
)
from ledger.ingest.waiting import Watched, waited_for
from ledger.lifecycle import UnknownObject, cancel_operation
from ledger.models import Operation
from ledger.queries.for_agents import (
    Place,
    Wanted,
    events_after,
    head_of,
    operations_newest_first,
    operations_of,
)
from ledger.transactions import database_clock

router = Router(tags=["operations"])

_READS = KeyWithVerb("read")
_PREFER = (
    "`wait=N` (RFC 7240): while the directive tells the agent to do nothing (`hold`, `reconcile`, "
    "`in_flight`), the answer comes when it has changed, or after N seconds, at most 30. An answer without "
    "`Preference-Applied` was not waited for: ask again after `Retry-After`."
)


@router.get(
    "/operations",
    auth=KeyWithVerb("read"),
    response={200: answers.OperationsAnswer, **READ_PROBLEMS},
)
def get_operations(
    request: HttpRequest, filters: Annotated[OperationFilters, StrictQuery()]
) -> answers.OperationsAnswer:
    """The tenant's operations that fit every filter given, newest first."""
    tenant_id, wanted = tenant_of(request), _wanted(filters)
    this_list = list_hash(tenant_id, "operations", asdict(wanted))
    place = place_in(this_list, filters.cursor)
    found = operations_newest_first(
        tenant_id,
        wanted,
        after=Place(datetime.fromisoformat(place[0]), place[1]) if place else None,
        most=filters.limit + 1,
    )
    page = found[: filters.limit]
    more, now = len(found) > len(page), database_clock()
    return answers.OperationsAnswer(
        operations=[operation_answer(request, operation, now) for operation in page],
        next_cursor=cursor_after(this_list, [page[-1].created_at.isoformat(), page[-1].pk]) if more else None,
    )


def _wanted(filters: OperationFilters) -> Wanted:
    return Wanted(
        operation_key=filters.operation_key,
        outcome=filters.outcome,
        run=filters.run,
        state=filters.state,
        tool=filters.tool,
        args_hash=filters.args_hash,
    )


@router.get(
    "/operations/{operation_id}",
    auth=_READS,
    response={200: answers.OperationAnswer, **READ_PROBLEMS},
)
def get_operation(
    request: HttpRequest,
    response: HttpResponse,
    operation_id: str,
    prefer: Annotated[str, Header(alias="Prefer", description=_PREFER)] = "",
) -> answers.OperationAnswer:
    """One operation with its attempts and deliveries."""
    watched = Watched(
        read=lambda: operation_answer(request, _operation(request, operation_id), database_clock()),
        head=lambda: head_of(tenant_of(request), checked_id(operation_id)),
        permitted=lambda: _READS(request),
    )
    return waited_for(watched, response, prefer)


@router.get(
    "/operations/{operation_id}/events",
    auth=KeyWithVerb("read"),
    response={200: answers.EventsAnswer, **READ_PROBLEMS},
)
def get_events(
    request: HttpRequest, operation_id: str, page: Annotated[EventsPage, StrictQuery()]
) -> answers.EventsAnswer:
    """The history of one operation, oldest first."""
    operation = _operation(request, operation_id)
    this_list = list_hash(operation.tenant_id, operation.pk, {})
    place = place_in(this_list, page.cursor)
    found = events_after(operation, place[0] if place else 0, most=page.limit + 1)
    lines = [event_line(event) for event in found[: page.limit]]
    more = len(found) > len(lines)
    return answers.EventsAnswer(
        events=lines, next_cursor=cursor_after(this_list, [lines[-1].sequence]) if more else None
    )


@router.post(
    "/operations/{operation_id}/cancel",
    auth=KeyWithVerb("ingest"),
    response={200: answers.StandingAnswer, **OBJECT_PROBLEMS},
)
def post_cancel(
    request: HttpRequest,
    response: HttpResponse,
    operation_id: str,
    body: Annotated[CancelBody, StrictBody()],
) -> answers.StandingAnswer:
    """Withdraw an operation. What is already sent is not undone."""
    before = _operation(request, operation_id)
    standing = call_verb(cancel_operation, key=key_of(request), operation_id=operation_id, reason=body.reason)
    mark_retry_after(response, standing)
    mark_replayed(response, replayed=before.cancelled_at is not None)
    return standing_answer(request, standing)


def _operation(request: HttpRequest, operation_id: str) -> Operation:
    """The one door to an operation. Raises `UnknownObject` for another tenant's as for one that never was."""
    found = operations_of(tenant_of(request)).filter(pk=checked_id(operation_id)).first()
    if found is None:
        raise UnknownObject
    return found
