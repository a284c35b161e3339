"""The queue: what waits in the tenants of this person, most urgent first."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_safe

from dashboard import filters, refusals
from dashboard.access import requires
from dashboard.http import Request, page
from ledger.rules.states import State
from review.queries import TAB_LABELS, BadFilter, QueuePage, Tab, queue
from review.queries.changes import changes_since
from review.queries.destinations import paused_by_themselves
from review.queries.parked import parked_count
from review.queries.system import faults_known_to
from review.queries.words import REASON_WORDS

SWEPT_WITHIN = timedelta(seconds=60)
TAB_TITLES = {Tab.UNOWNED: "Only the tenant’s first team owns these"}
OPEN_STATES = (State.UNKNOWN, State.MANUAL_REVIEW)


@requires("view")
@require_safe
def queue_page(request: Request) -> HttpResponse:
    try:
        asked, shown = filters.read_filters(request.GET), filters.shown_values(request.GET)
        found = queue(request.user, asked)
    except BadFilter as error:
        return refusals.unreadable(request, error, whole=reverse("queue"), section="review")
    if not found.tenants:
        return refusals.no_tenants(request, section="review")
    return page(request, "dashboard/queue.html", _context(request, found, shown))


@requires("view")
@require_safe
def strip(request: Request) -> HttpResponse:
    """What changed since the page was read, in a line; 204 while nothing did. Rows are never touched."""
    try:
        since = _moment(request.GET.get("since", ""))
        changes = changes_since(request.user, filters.read_filters(request.GET), since)
    except BadFilter:
        return HttpResponse(status=400)
    if not (changes.new or changes.changed):
        return HttpResponse(status=204)
    context = {"changes": changes, "address": _address(request, cursor=None)}
    return page(request, "dashboard/queue.html#strip", context)


def _context(request: Request, found: QueuePage, shown: Mapping[str, str]) -> dict[str, Any]:
    return {
        "page": found,
        "as_of": found.as_of,
        "section": "review",
        "whole_section": True,
        "paused": paused_by_themselves(request.user),
        "tickable": found.may_own and found.tab is not Tab.DECIDED,
        "faults": faults_known_to(request.user),
        "asleep": found.last_sweep_at is None or found.as_of - found.last_sweep_at > SWEPT_WITHIN,
        "tabs": [_tab(request, found, tab) for tab in Tab if found.counts.get(tab) is not None],
        "shown": shown,
        "filtered": filters.is_filtered(request.GET),
        "unfiltered": f"?tab={found.tab}",
        "query": filters.kept_query(request.GET, cursor=None),
        **filters.pages(request.GET, found.next_cursor, filters.FIELDS),
        "address": _address(request),
        "elsewhere": 0 if found.tab in (Tab.ALL, Tab.DECIDED) else found.counts.get(Tab.ALL, 0),
        "states": filters.same_words(OPEN_STATES),
        "tools": filters.same_words(found.tools),
        "tenants": filters.tenant_options(found.tenants),
        "reasons": tuple(REASON_WORDS.items()),
        "parked": parked_count(request.user),
    }


def _tab(request: Request, found: QueuePage, tab: Tab) -> dict[str, Any]:
    return {
        "label": TAB_LABELS[tab],
        "title": TAB_TITLES.get(tab, ""),
        "count": found.counts[tab],
        "address": filters.kept_query(request.GET, tab=tab, cursor=None),
        "here": tab is found.tab,
    }


def _address(request: Request, **changes: str | None) -> str:
    return filters.kept_query(request.GET, **changes) or "?"


def _moment(text: str) -> datetime:
    try:
        moment = parse_datetime(text) if len(text) <= filters.LONGEST else None
    except ValueError:  # of the right shape, and no day that exists
        moment = None
    if moment is None or moment.tzinfo is None:
        raise BadFilter("since", "This is not a time.")
    return moment
