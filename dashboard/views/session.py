"""Signing in and out, setting a password by a link, and where one starts."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.contrib.auth import logout, update_session_auth_hash
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.access import public, requires
from dashboard.asks import Adding, ask_to_add
from dashboard.forms import OwnPasswordForm, SetPasswordForm, SignInForm
from dashboard.http import Request, SeeOther, go_to, page
from dashboard.icons import DELIVERY_MEANINGS, STATE_MEANINGS
from dashboard.reauthentication import who_knows
from review import accounts
from review.accounts import LinkOver, PasswordRefused
from review.answers import Refused

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

LINK_OVER = (
    "This link was used, replaced or has ended; or its code is not whole. Ask whoever gave it to you for a "
    "new one."
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
    if "Location" in answer.headers:
        answer.status_code = HTTPStatus.SEE_OTHER  # the same answer: its cookie makes forms of before invalid
    return answer


@public
@require_http_methods(["GET", "HEAD", "POST"])
def set_password(request: HttpRequest) -> HttpResponse:
    """By the code of a link, which stands behind # in it: no log and no other server ever reads it."""
    form = SetPasswordForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            accounts.set_password(form.cleaned_data["code"].strip(), form.cleaned_data["password"])
        except LinkOver:
            form.add_error("code", LINK_OVER)
        except PasswordRefused as refused:
            form.add_error(refused.field, str(refused))
        else:
            logout(request)
            return SeeOther(f"{reverse('sign_in')}?set")
    return page(request, "dashboard/set_password.html", {"form": form}, status=422 if form.is_bound else 200)


@requires("view")
@require_http_methods(["GET", "HEAD", "POST"])
def change_password(request: Request) -> HttpResponse:
    """Of whoever is signed in, who stays signed in here and nowhere else."""
    form = OwnPasswordForm(request.POST or None)

    def change(typed: dict[str, Any]) -> HttpResponse:
        person = who_knows(request, typed["current"])
        if person is None:
            raise Refused("This is not your password. Nothing was changed.", field="current")
        accounts.change_password(person, typed["password"])
        person.refresh_from_db()
        update_session_auth_hash(request, person)
        return go_to(request, reverse("own_rights"))

    adding = Adding(
        heading="Change your password",
        says="You stay signed in here, and are signed out everywhere else.",
        press="Change the password",
        list=reverse("own_rights"),
        what="permissions",
    )
    return ask_to_add(request, adding, form, change, section="me")


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
