"""Addresses under /api/v1/. Whatever is none of them is answered by a problem too."""

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, path, re_path
from django.views.decorators.csrf import csrf_exempt

from ledger.ingest.api import api
from ledger.ingest.errors import Problem, problem_response


@csrf_exempt
def no_such_address(request: HttpRequest) -> HttpResponse:
    """404, whatever the method."""
    return problem_response(request, Problem("not-found"))


urlpatterns: list[URLPattern | URLResolver] = [path("", api.urls), re_path(r"[\s\S]*", no_such_address)]
