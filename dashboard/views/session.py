"""Signing in and out, and where one starts."""

from __future__ import annotations

from django.contrib.auth import logout
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.access import public, requires
from dashboard.forms import SignInForm
from dashboard.http import Request, SeeOther, page
from dashboard.icons import DELIVERY_MEANINGS, STATE_MEANINGS

KEYS = (
    ("j, k", "next and previous row of the queue"),
    ("Enter", "open the row; after a decision: the next item"),
    ("/", "search"),
    ("r", "show what has changed"),
    ("u", "back to the queue"),
    ("c", "claim"),
    ("i", "open Assign"),
    ("x", "tick the row of the queue"),
    ("z", "open Snooze"),
    ("a", "open Approve and dispatch"),
    ("d", "open Reject"),
    ("h", "open Confirm it happened"),
    ("n", "open Confirm it did not happen"),
    ("l", "open Relink to corrected arguments"),
    ("p", "open Re-check"),
    ("Ctrl+Enter", "press the button of the form you type in"),
    ("Esc", "close the form without deciding"),
    ("?", "this page"),
)

_sign_in = LoginView.as_view(
    template_name="dashboard/sign_in.html", authentication_form=SignInForm, redirect_authenticated_user=True
)


@public
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """Password sign-in; `next` says where to return to, inside this site only."""
    answer = _sign_in(request)
    if not isinstance(answer, HttpResponse):
        raise TypeError("the sign-in view answers with a page or a redirect")
    return SeeOther(answer.headers["Location"]) if "Location" in answer.headers else answer


@public
@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    return SeeOther(reverse("sign_in"))


@requires("view")
@require_safe
def start(_request: Request) -> HttpResponse:
    return SeeOther(reverse("queue"))


@requires("view")
@require_safe
def help_page(request: Request) -> HttpResponse:
    context = {
        "section": "help",
        "states": tuple(STATE_MEANINGS.items()),
        "delivery_states": tuple(DELIVERY_MEANINGS.items()),
        "keys": KEYS,
    }
    return page(request, "dashboard/help.html", context)
