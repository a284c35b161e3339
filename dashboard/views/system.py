"""Is the system at work, and does what it wrote hold: for those in charge of a tenant."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from dashboard.access import requires
from dashboard.http import Request, page
from ledger.models import FsckForm
from review.queries.system import system_page

NAMES = {FsckForm.WHOLE: "The whole ledger", FsckForm.TOUCHED: "What was written to since it was clean"}
SCHEDULES = {FsckForm.WHOLE: "It is checked every night.", FsckForm.TOUCHED: "It is checked every minute."}


@requires("audit")
@require_safe
def system(request: Request) -> HttpResponse:
    found = system_page(request.user)
    context = {
        "page": found,
        "as_of": found.as_of,
        "names": NAMES,
        "schedules": SCHEDULES,
        "section": "system",
    }
    return page(request, "dashboard/system.html", context)
