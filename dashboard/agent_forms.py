"""What an administrator types about agents and keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms

from dashboard.filters import same_words
from dashboard.forms import DecisionForm, line_input, textarea
from ledger.rules.names import KEY_VERBS, LONGEST_NAME, MOST_KEY_DAYS

MOST_SCOPES = 50
VERB_WORDS = {
    "ingest": "post intents, ask for leave, report",
    "read": "read operations and runs",
    "ack": "acknowledge deliveries",
    "admin": "reserved for calls of administration",
}


class OwnerForm(DecisionForm):
    """Who answers for the agent."""

    owner = forms.ChoiceField(label="Owner", widget=forms.Select(attrs={"class": "form-select"}))
    field_order = ("name", "owner", "why")

    def __init__(self, *args: Any, owners: Iterable[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = self.fields["owner"]
        if isinstance(choices, forms.ChoiceField):
            choices.choices = [("", "Choose…"), *same_words(owners)]


class AgentForm(OwnerForm):
    """An agent to be."""

    name = forms.CharField(label="Name", max_length=LONGEST_NAME, widget=line_input())


class DaysForm(DecisionForm):
    """How long a new key is valid. `newest`: the newest key when the form was shown."""

    days = forms.IntegerField(
        label="Valid for, in days",
        min_value=1,
        max_value=MOST_KEY_DAYS,
        initial=90,
        widget=forms.NumberInput(attrs={"class": "form-control"}),
    )
    newest = forms.CharField(widget=forms.HiddenInput, required=False, max_length=40)
    field_order = ("scopes", "verbs", "overlap_h", "days", "why")


class NewKeyForm(DaysForm):
    """A key to be."""

    scopes = forms.CharField(
        label="Scopes",
        widget=textarea(3, "code", spellcheck="false", autocomplete="off"),
        help_text="One a line: tool:GLOB, and target:GLOB where rules name a target.",
    )
    verbs = forms.MultipleChoiceField(
        label="Verbs",
        initial=["ingest", "read"],
        widget=forms.CheckboxSelectMultiple,
        choices=[(verb, f"{verb}: {VERB_WORDS[verb]}") for verb in KEY_VERBS],
        error_messages={"required": "Choose at least one verb."},
    )

    def clean_scopes(self) -> list[str]:
        scopes = [line.strip() for line in self.cleaned_data["scopes"].splitlines() if line.strip()]
        if len(scopes) > MOST_SCOPES:
            raise forms.ValidationError(f"At most {MOST_SCOPES} scopes.")
        return scopes


class RotateKeyForm(DaysForm):
    """A key that replaces another one."""

    overlap_h = forms.TypedChoiceField(
        label="The key before stays valid for",
        coerce=int,
        initial=24,
        widget=forms.RadioSelect,
        choices=(
            (24, "24 hours"),
            (168, "7 days"),
            (1, "1 hour"),
        ),
        help_text="Where it has leaked, revoke it instead. It never outlives its own end.",
    )
