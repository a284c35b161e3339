"""What a person types about whose items are: snoozes, hand-overs, what is waited on, rules and teams."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms

from dashboard.forms import LONGEST_WHY, AssignForm, DecisionForm, line_input, own_words, textarea
from ledger.rules.names import LONGEST_NAME, LONGEST_URL
from review.reach import REACH_WORDS, Reach

Options = tuple[tuple[str, str], ...]

OWN_TIME = "until"
SPANS = (
    ("1", "1 hour"),
    ("4", "4 hours"),
    ("24", "1 day"),
    ("72", "3 days"),
    ("168", "7 days"),
    (OWN_TIME, "the time typed below"),
)
LONGEST_WAITS_ON = 200


class SnoozeForm(DecisionForm):
    """`end` becomes how long it lasts, or until when."""

    lasts = forms.ChoiceField(label="For", choices=SPANS, initial="4", widget=forms.RadioSelect)
    until = forms.DateTimeField(
        required=False,
        label="Until, in UTC",
        widget=forms.DateTimeInput(attrs={"class": "form-control", "type": "datetime-local"}),
        error_messages={"invalid": "Type a day and a time, for example 2026-11-30 09:00."},
    )

    def clean(self) -> dict[str, Any]:
        typed = super().clean() or {}
        lasts, until = typed.get("lasts"), typed.get("until")
        if lasts == OWN_TIME and until is None and "until" not in self.errors:
            self.add_error("until", "Type until when.")
        elif lasts:
            typed["end"] = until if lasts == OWN_TIME else timedelta(hours=int(lasts))
        return typed


class HandOverForm(AssignForm):
    """The reason is the note the colleague reads."""

    why = own_words(
        "Note for your colleague",
        "What you know and what is left to do; recorded with your name in the history.",
        missing="Type a note: your colleague starts from it.",
    )


class WaitOnForm(DecisionForm):
    """Both empty: it waits on nobody any more."""

    what = forms.CharField(
        required=False,
        max_length=LONGEST_WAITS_ON,
        widget=line_input(),
        label="Waiting on",
        help_text="Whom or what, for example “the provider’s support”. Empty: it waits on nobody any more.",
    )
    url = forms.CharField(
        required=False,
        max_length=LONGEST_URL,
        widget=line_input(),
        label="Address, if there is one",
        help_text="https only, for example of the ticket.",
    )
    why = forms.CharField(label="Note", required=False, max_length=LONGEST_WHY, widget=textarea(3))


class TeamNameForm(forms.Form):
    """What a team is called."""

    name = forms.CharField(label="Name", max_length=LONGEST_NAME, widget=line_input())


class NewTeamForm(TeamNameForm):
    """A team to be."""

    tenant = forms.ChoiceField(label="Tenant", widget=forms.Select(attrs={"class": "form-select"}))
    field_order = ("tenant", "name")

    def __init__(self, *args: Any, tenants: Options, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        offer(self.fields["tenant"], tenants)


class MemberForm(forms.Form):
    """Who joins."""

    username = forms.ChoiceField(label="Add", widget=forms.Select(attrs={"class": "form-select"}))

    def __init__(self, *args: Any, people: Options, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        offer(self.fields["username"], (("", "Choose…"), *people))


class ReachForm(DecisionForm):
    """For which questions rules hold when they are saved."""

    reach = forms.ChoiceField(
        label="They hold for",
        choices=tuple(REACH_WORDS.items()),
        initial=Reach.UNOWNED,
        widget=forms.RadioSelect,
    )


def offer(field: forms.Field, options: Options) -> None:
    """What a field of choices lets one choose."""
    if isinstance(field, forms.ChoiceField):
        field.choices = options
