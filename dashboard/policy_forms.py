"""What an administrator types about a policy."""

from __future__ import annotations

from django import forms

from dashboard.forms import LONGEST_ARGUMENTS, LONGEST_WHY, textarea
from review.policies import DryRun


class PolicyForm(forms.Form):
    """A document. `base` and `checked` come from the check: which version was in force, what was checked."""

    document = forms.CharField(
        max_length=LONGEST_ARGUMENTS,
        strip=False,
        widget=textarea(24, "code", spellcheck="false", autocomplete="off"),
        label="Document",
        help_text="One JSON object; see “A policy” in the README for every field.",
        error_messages={"required": "Type the document as one JSON object."},
    )
    why = forms.CharField(
        label="Reason",
        required=False,
        max_length=LONGEST_WHY,
        widget=textarea(3),
        help_text="Recorded with your name and the version.",
    )
    base = forms.IntegerField(widget=forms.HiddenInput, required=False, min_value=0)
    checked = forms.CharField(widget=forms.HiddenInput, required=False, max_length=100)

    def was_checked(self, run: DryRun) -> bool:
        """Is this what the person was shown the consequences of?"""
        return self.cleaned_data["checked"] == run.hash and self.cleaned_data["base"] is not None

    @classmethod
    def asking(cls, form: PolicyForm, run: DryRun) -> PolicyForm:
        """The same typed text and what was said against it, bound to this check."""
        typed = {**form.cleaned_data, "why": form.data.get("why", ""), "base": run.base, "checked": run.hash}
        shown = cls(typed)
        shown.is_valid()
        for field, errors in form.errors.items():
            shown.add_error(field, [str(error) for error in errors])
        return shown
