"""Forms that stand open on the page of what they are about: asked, refused; and what is shown once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django import forms
from django.http import HttpResponse

from dashboard import refusals
from dashboard.http import Request, go_to, page, page_or_part
from review.answers import Refused
from review.queries.delivery_values import PressView


@dataclass(frozen=True)
class Asked:
    """What is asked before the press. `press` None: the button is gone; `refusal`: why the press before it
    did nothing; `whole_page`: its answer is the page itself and no fragment."""

    press: PressView | None
    form: forms.Form
    address: str
    back: str
    refusal: str = ""
    grave: bool = False
    whole_page: bool = False


@dataclass(frozen=True)
class ShownOnce:
    """A secret in the one answer that shows it. `what`: what it is, for the button that copies it."""

    heading: str
    what: str
    text: str
    says: str


@dataclass(frozen=True)
class Adding:
    """The page of a form that makes something new. `list`: where one comes from, with its `what`; `other`:
    where one goes who wants something like it."""

    heading: str
    says: str
    press: str
    list: str
    what: str
    other: str = ""
    other_words: str = ""


def ask(
    request: Request, template: str, context: Mapping[str, Any], asked: Asked, *, status: int = 200
) -> HttpResponse:
    """The page with the form open, or for htmx the form alone; without the button, the page as it is now."""
    if asked.press is None:
        return go_to(request, asked.back)
    return page_or_part(request, template, "decision", {**context, "asked": asked}, status=status)


def ask_again(
    request: Request, template: str, context: Mapping[str, Any], asked: Asked, words: str
) -> HttpResponse:
    """The page as it is now, with why the press did nothing; where the button is gone, only why."""
    if asked.press is None:
        typed, section = request.POST.get("why", ""), str(context["section"])
        return refusals.too_late(request, words, back=asked.back, section=section, typed=typed)
    return ask(request, template, context, replace(asked, refusal=words), status=409)


def ask_to_add(
    request: Request,
    adding: Adding,
    form: forms.Form,
    add: Callable[[dict[str, Any]], HttpResponse],
    *,
    section: str,
) -> HttpResponse:
    """The form on a page of its own; `add` does it, or what it raises is said where it was typed."""
    if request.method == "POST" and form.is_valid():
        try:
            return add(form.cleaned_data)
        except Refused as refused:
            form.add_error(refused.field or None, str(refused))
    status = 422 if form.is_bound else 200
    context = {"adding": adding, "form": form, "section": section}
    return page(request, "dashboard/add.html", context, status=status)
