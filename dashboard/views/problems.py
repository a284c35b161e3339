"""The pages behind the `type` of every problem the API answers with."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.access import public
from dashboard.http import page
from ledger.ingest.problems import PROBLEMS


@public
@require_safe
def problems(request: HttpRequest) -> HttpResponse:
    return page(request, "dashboard/problems.html", {"kinds": tuple(PROBLEMS.values())})


@public
@require_safe
def problem(request: HttpRequest, slug: str) -> HttpResponse:
    if slug not in PROBLEMS:
        raise Http404
    return page(request, "dashboard/problem_kind.html", {"kind": PROBLEMS[slug]})
