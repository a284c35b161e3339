"""Fresh re-authentication before a dangerous approval: the password again, and a press that counts once.

Nothing is kept to be pressed again for the person: where the sign-in is not fresh the form asks for the
password, and a form that was sent once, or was made for something else, decides nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import authenticate, update_session_auth_hash
from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils.dateparse import parse_datetime

from dashboard.forms import DecisionForm
from dashboard.http import Request
from ledger.models import User
from ledger.rules.vocabulary import DecisionKind
from ledger.transactions import database_clock
from review.answers import DecisionRefused
from review.presses import new_press, use_press
from review.queries import ItemPage

FRESH_FOR = timedelta(minutes=5)
_FRESH_AT = "authenticated_at"


@receiver(user_logged_in)
def mark_fresh(request: HttpRequest, **_: Any) -> None:
    """The person has just shown who they are."""
    request.session[_FRESH_AT] = database_clock().isoformat()


def is_fresh(request: HttpRequest, now: datetime) -> bool:
    shown_at = parse_datetime(str(request.session.get(_FRESH_AT, "")))
    return shown_at is not None and now - shown_at < FRESH_FOR


def ask_again(request: Request, found: ItemPage, kind: DecisionKind, form: DecisionForm) -> DecisionForm:
    """The form as this person gets it: with the password where it is asked again, else without."""
    if kind is not DecisionKind.APPROVE:
        return form
    if not _is_asked(request, found):
        del form.fields["password"], form.fields["press"]
    elif found.ballot is not None and request.method != "POST":
        form.initial["press"] = new_press(request.user, found.item_id, found.ballot.digest)
    return form


def renewed(request: Request, found: ItemPage, kind: DecisionKind, typed: Any) -> Any:
    """What was typed, with a new press and without the password: for a form that is shown again."""
    if kind is DecisionKind.APPROVE and found.ballot is not None and _is_asked(request, found):
        typed["press"] = new_press(request.user, found.item_id, found.ballot.digest)
        typed.pop("password", None)
    return typed


def check_press(request: Request, found: ItemPage, form: DecisionForm) -> bool:
    """May this press decide? False: the password is wrong, and the form says so. Raises `DecisionRefused` for
    a press that was made before, or for something else."""
    token = request.POST.get("press", "")
    if not token and "password" not in form.fields:
        return True
    if "password" in form.fields and who_knows(request, form.cleaned_data["password"]) is None:
        form.add_error("password", "This is not your password. Nothing was decided.")
        return False
    if not use_press(request.user, token, found.item_id, request.POST.get("shown_digest", "")):
        raise DecisionRefused(
            "pressed-before",
            "This form was sent before, or was made for something else. Read it and press anew.",
        )
    mark_fresh(request)
    return True


def _is_asked(request: Request, found: ItemPage) -> bool:
    dangerous = found.ballot is not None and found.ballot.dangerous
    return dangerous and not is_fresh(request, found.as_of)


def who_knows(request: Request, password: str) -> User | None:
    """The person who is signed in, if this is their password. Asked the way a sign-in is, so that guesses are
    counted and slowed down as there. A password that is stored in a newer form on the way keeps its person
    signed in."""
    known = authenticate(request, username=request.user.get_username(), password=password)
    if not isinstance(known, User) or known.pk != request.user.pk:
        return None
    update_session_auth_hash(request, known)
    return known
