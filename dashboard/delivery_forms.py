"""What a person types about deliveries and destinations."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.dateparse import parse_datetime

from dashboard.filters import tenant_options
from dashboard.forms import DecisionForm, line_input, textarea
from ledger.rules.names import LONGEST_NAME, LONGEST_URL
from ledger.transactions import database_clock
from review.destinations import Wanted
from review.queries import TenantView
from review.queries.delivery_words import ACK_WORDS

FASTEST_PER_S = 100
MOST_GLOBS = 50


class FreezeForm(DecisionForm):
    """`until`: when the count was read. What died later is not in the plan."""

    rate_per_s = forms.FloatField(
        label="How many a second",
        min_value=0.1,
        max_value=FASTEST_PER_S,
        initial=10,
        widget=forms.NumberInput(attrs={"class": "form-control", "step": "any"}),
        error_messages={"required": "Say how many a second: the consumer has to bear them."},
    )
    until = forms.CharField(widget=forms.HiddenInput, max_length=64)

    def clean_until(self) -> Any:
        try:
            until = parse_datetime(self.cleaned_data["until"])
        except ValueError:
            until = None
        if until is None or until.tzinfo is None or until > database_clock():
            raise forms.ValidationError("The count on this page is not readable: open the page again.")
        return until


class RotateForm(forms.Form):
    """`replaces`: the secret that was the newest when the form was shown."""

    overlap_h = forms.TypedChoiceField(
        label="The secret before signs beside it for",
        coerce=int,
        initial=24,
        widget=forms.RadioSelect,
        choices=(
            (24, "24 hours"),
            (168, "7 days"),
            (1, "1 hour"),
            (0, "no time: it ends at once (it has leaked)"),
        ),
    )
    replaces = forms.CharField(widget=forms.HiddenInput, required=False, max_length=40)


class NothingToType(forms.Form):
    """A press that needs no word."""


class DestinationForm(forms.Form):
    """A destination to be."""

    tenant = forms.ChoiceField(label="Tenant", widget=forms.Select(attrs={"class": "form-select"}))
    name = forms.CharField(label="Name", max_length=LONGEST_NAME, widget=line_input())
    url = forms.CharField(
        label="Address",
        max_length=LONGEST_URL,
        widget=line_input(),
        help_text="Where its consumer takes deliveries; https, without user and password.",
    )
    ack = forms.ChoiceField(
        label="What counts as acknowledgement?",
        initial="response",
        widget=forms.RadioSelect,
        choices=tuple(ACK_WORDS.items()),
    )
    tools = forms.CharField(
        label="Tools it hears of",
        required=False,
        widget=textarea(3, "code", spellcheck="false", autocomplete="off"),
        help_text="One glob a line, for example refund.*; none: it hears of every tool.",
    )

    def __init__(self, *args: Any, tenants: tuple[TenantView, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = self.fields["tenant"]
        if isinstance(choices, forms.ChoiceField):
            choices.choices = tenant_options(tenants)

    def clean_tools(self) -> tuple[str, ...]:
        globs = tuple(line.strip() for line in self.cleaned_data["tools"].splitlines() if line.strip())
        if len(globs) > MOST_GLOBS:
            raise forms.ValidationError(f"At most {MOST_GLOBS} globs.")
        return globs

    @property
    def wanted(self) -> Wanted:
        typed = self.cleaned_data
        return Wanted(typed["tenant"], typed["name"], typed["url"], typed["ack"], typed["tools"])
