"""Who may open a page. Every view carries one of these decorators; a test fails on one that does not."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, cast
from urllib.parse import urlencode

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse

from dashboard import errors
from dashboard.http import Request, go_to, here
from ledger.transactions import Busy
from review.queries import NotVisible

Right = Literal["view", "decide", "administer", "audit"]
View = Callable[..., HttpResponse]

SAFE_METHODS = frozenset({"GET", "HEAD"})


def public(view: View) -> View:
    """Anybody may open this, signed in or not."""
    view.access = "public"  # type: ignore[attr-defined]
    return view


def requires(right: Right) -> Callable[[View], View]:
    """Only a signed-in person. `right` itself is asked of the object's tenant, by the query or verb called.

    The one door: what a person may not know of is `NotVisible` there, and here the 404 of an unknown object.
    """

    def guard(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if not request.user.is_authenticated:
                return sign_in_and_return(request)
            return _answer(view, cast("Request", request), args, kwargs)

        guarded.access = right  # type: ignore[attr-defined]
        return guarded

    return guard


def sign_in_and_return(request: HttpRequest) -> HttpResponse:
    """To the sign-in page, and back to where the person was. A press is never repeated for them."""
    back = (
        request.get_full_path() if request.method in SAFE_METHODS and not _is_part(request) else here(request)
    )
    return go_to(request, f"{settings.LOGIN_URL}?{urlencode({'next': back})}")


def _is_part(request: HttpRequest) -> bool:
    return bool(getattr(request, "htmx", False))


def _answer(view: View, request: Request, args: tuple[Any, ...], kwargs: dict[str, Any]) -> HttpResponse:
    try:
        return view(request, *args, **kwargs)
    except NotVisible:
        raise Http404 from None
    except Busy:
        return errors.busy(request)
