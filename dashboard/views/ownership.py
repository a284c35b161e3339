"""The rules of ownership: what is in force, a draft with its dry run, and what saving it moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard import refusals
from dashboard.access import requires
from dashboard.drafts import draft_in, rearranged, rows_of
from dashboard.filters import one_value
from dashboard.http import Request, go_to, page
from dashboard.ownership_forms import ReachForm
from review import ownership_rules
from review.door import NotPermitted
from review.ownership_rules import Applied, BadRules, RulesChanged, TypedRule
from review.queries import BadFilter
from review.queries.ownership import OwnershipPage, RuleView, ownership_page, rules_to_edit
from review.queries.ownership_moves import DryRun
from review.queries.page import AssigneeView
from review.queries.tenants import tenants_of
from review.queries.values import LONGEST_NUMBER, number_in
from review.queries.words import EFFECT_WORDS, REASON_WORDS
from review.reach import Reach

SECTION = "ownership"
EDIT = "dashboard/ownership_edit.html"
NO_VERSION = "There is no such version of the rules."
Faults = Sequence[tuple[int, str, str]]
APPLIED_WHY = "The rules of ownership were applied to open items."


@requires("view")
@require_safe
def rules(request: Request) -> HttpResponse:
    tenants = tenants_of(request.user)
    if not tenants:
        return refusals.no_tenants(request, section=SECTION)
    try:
        slug = one_value(request.GET, "tenant") or tenants[0].slug
        version = number_in("version", one_value(request.GET, "version"), NO_VERSION)
    except BadFilter as error:
        return refusals.unreadable(request, error, whole=reverse("ownership"), section=SECTION)
    found = ownership_page(request.user, slug, version=version)
    context = {"page": found, "as_of": found.as_of, "section": SECTION, "whole_section": True}
    return page(request, "dashboard/ownership.html", context)


@requires("administer")
@require_http_methods(["GET", "HEAD", "POST"])
def edit_rules(request: Request, slug: str) -> HttpResponse:
    """GET opens a draft of the rules in force; each POST carries the draft on, and only `save` keeps it."""
    try:
        found, owners = rules_to_edit(request.user, slug)
        editor = _Editor(request, found, owners)
        if request.method != "POST":
            return editor.show([_typed(rule) for rule in found.rules])
        return _press(editor, draft_in(request.POST), request.POST.get("press", ""))
    except NotPermitted as refusal:
        return refusals.not_permitted(request, refusal, back=_address(slug), section=SECTION)


@requires("administer")
@require_POST
def apply_rules(request: Request, slug: str) -> HttpResponse:
    """Ask the rules in force about open items; at most 100 at once, so this may be pressed again."""
    reach = request.POST.get("reach", "")
    if reach not in (Reach.UNOWNED, Reach.ALL):
        return go_to(request, _address(slug))
    try:
        applied = ownership_rules.apply_rules(request.user, slug, reach=Reach(reach), why=APPLIED_WHY)
    except NotPermitted as refusal:
        return refusals.not_permitted(request, refusal, back=_address(slug), section=SECTION)
    return _applied(request, slug, Reach(reach), applied)


@dataclass(frozen=True)
class _Editor:
    """One tenant's rules as they stand while somebody types others."""

    request: Request
    found: OwnershipPage
    owners: tuple[AssigneeView, ...]

    @property
    def slug(self) -> str:
        return self.found.tenant.slug

    @property
    def based_on(self) -> int:
        """The version the draft was made from; one that never was where that cannot be read."""
        if self.request.method != "POST":
            return self.found.newest
        typed = self.request.POST.get("based_on", "")
        return int(typed) if typed.isascii() and typed.isdecimal() and len(typed) <= LONGEST_NUMBER else -1

    def show(
        self, draft: Sequence[TypedRule], *, faults: Faults = (), status: int = 200, **more: object
    ) -> HttpResponse:
        """The form, with this draft in it."""
        known = {owner.value for owner in self.owners}
        gone = sorted({rule.owner for rule in draft if rule.owner} - known)
        context = {
            "page": self.found,
            "section": SECTION,
            "rows": rows_of(draft, faults),
            "owners": [
                *((one.value, one.label) for one in self.owners),
                *((n, f"{n} (cannot act)") for n in gone),
            ],
            "reasons": tuple(REASON_WORDS.items()),
            "effects": tuple(EFFECT_WORDS.items()),
            "based_on": self.based_on,
            **more,
        }
        return page(self.request, EDIT, context, status=status)

    def show_dry_run(
        self, draft: Sequence[TypedRule], tried: DryRun, form: ReachForm, *, status: int = 200
    ) -> HttpResponse:
        """What the draft would move; it can be saved from here."""
        context = {
            "page": self.found,
            "section": SECTION,
            "draft": list(zip(draft, tried.matched, strict=True)),
            "tried": tried,
            "reasons": REASON_WORDS,
            "effects": EFFECT_WORDS,
            "form": form,
            "based_on": self.based_on,
        }
        return page(self.request, "dashboard/ownership_dry_run.html", context, status=status)


def _press(editor: _Editor, draft: list[TypedRule], press: str) -> HttpResponse:
    if press not in ("dry-run", "save"):
        return editor.show(rearranged(draft, press))
    try:
        tried = ownership_rules.try_rules(editor.request.user, editor.slug, draft)
        form = ReachForm(editor.request.POST if press == "save" else None)
        if not form.is_valid():
            return editor.show_dry_run(draft, tried, form, status=422 if form.is_bound else 200)
        return _save(editor, draft, Reach(form.cleaned_data["reach"]), form.cleaned_data["why"])
    except BadRules as error:
        return editor.show(draft, faults=error.faults, status=422)
    except RulesChanged:
        newest = rules_to_edit(editor.request.user, editor.slug)[0]
        return editor.show(draft, status=409, lost=True, changed=newest.shown, based_on=newest.newest)


def _save(editor: _Editor, draft: list[TypedRule], reach: Reach, why: str) -> HttpResponse:
    user, slug = editor.request.user, editor.slug
    version = ownership_rules.save_rules(user, slug, draft, based_on=editor.based_on, reach=reach, why=why)
    if reach is Reach.NEW:
        return go_to(editor.request, _address(slug))
    applied = ownership_rules.apply_rules(user, slug, reach=reach, why=why)
    return _applied(editor.request, slug, reach, applied, version=version)


def _applied(
    request: Request, slug: str, reach: Reach, applied: Applied, *, version: int = 0
) -> HttpResponse:
    context: dict[str, Any] = {
        "applied": applied,
        "version": version,
        "reach": reach,
        "slug": slug,
        "back": _address(slug),
        "section": SECTION,
    }
    return page(request, "dashboard/ownership_applied.html", context)


def _typed(rule: RuleView) -> TypedRule:
    return TypedRule(rule.tool_glob, rule.reason, rule.effect, rule.owner, rule.destination_glob)


def _address(slug: str) -> str:
    return f"{reverse('ownership')}?{urlencode({'tenant': slug})}"
