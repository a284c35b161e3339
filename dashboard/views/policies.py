"""Policies: their versions, how they differ, and publishing one after what it changes was shown."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.urls import reverse

from dashboard.charge import SECTION, changes_charge, reads_charge
from dashboard.filters import one_value
from dashboard.http import Request, go_to, page
from dashboard.policy_forms import PolicyForm
from review import policies
from review.policies import DryRun, PolicyRefused
from review.queries.charge import administered
from review.queries.policies import changes_of, document_in_force, policies_page, policy_page
from review.queries.values import number_in

NOT_A_VERSION = "A version is a number."
CHANGED_AFTER_CHECK = "You changed the document after it was checked: check again what it changes."


@reads_charge
def policy_list(request: Request) -> HttpResponse:
    found = policies_page(request.user, one_value(request.GET, "tenant"))
    context = {"page": found, "as_of": found.as_of, "section": SECTION, "tab": "policies"}
    return page(request, "dashboard/policies.html", context)


@reads_charge
def policy(request: Request, slug: str, version: int) -> HttpResponse:
    against = number_in("against", one_value(request.GET, "against"), NOT_A_VERSION)
    found = policy_page(request.user, slug, version, against=against)
    context = {"page": found, "row": found.row, "as_of": found.as_of, "section": SECTION}
    return page(request, "dashboard/policy.html", context)


@changes_charge
def publish_policy(request: Request, slug: str) -> HttpResponse:
    """GET shows the document in force to be edited; the first POST says what it would change, the second one
    publishes exactly what was checked."""
    charge = administered(request.user, slug)
    if request.method != "POST":
        initial = {"document": document_in_force(charge.tenant)}
        return _shown(request, {"form": PolicyForm(initial=initial), "charge": charge})
    form = PolicyForm(request.POST)
    if not form.is_valid():
        return _shown(request, {"form": form, "charge": charge}, status=422)
    try:
        run = policies.dry_run(request.user, slug, typed=form.cleaned_data["document"])
    except PolicyRefused as refused:
        form.add_error("document", str(refused))
        return _shown(request, {"form": form, "charge": charge}, status=422)
    return _checked(request, form, run, {"charge": charge})


def _checked(request: Request, form: PolicyForm, run: DryRun, context: dict[str, Any]) -> HttpResponse:
    slug, typed = context["charge"].tenant.slug, form.cleaned_data
    if "publish" not in request.POST or not form.was_checked(run):
        refusal = CHANGED_AFTER_CHECK if "publish" in request.POST else ""
        return _asked(request, form, run, context, refusal=refusal, status=409 if refusal else 200)
    if not typed["why"]:
        form.add_error("why", "Type a reason: it is recorded with the version.")
        return _asked(request, form, run, context, status=422)
    try:
        version = policies.publish(
            request.user, slug, typed=typed["document"], base=typed["base"], why=typed["why"]
        )
    except PolicyRefused as refused:
        return _asked(request, form, run, context, refusal=str(refused), status=409)
    return go_to(request, reverse("policy", args=[slug, version]))


def _asked(
    request: Request,
    form: PolicyForm,
    run: DryRun,
    context: dict[str, Any],
    *,
    refusal: str = "",
    status: int = 200,
) -> HttpResponse:
    """The document beside what publishing it would change; the press is bound to both."""
    shown = PolicyForm.asking(form, run)
    checked = {"form": shown, "run": run, "changes": changes_of(run), "refusal": refusal}
    return _shown(request, {**context, **checked}, status=status)


def _shown(request: Request, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    return page(request, "dashboard/policy_publish.html", {**context, "section": SECTION}, status=status)
