"""What an administrator types about people's access."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms

from dashboard.forms import DecisionForm, line_input
from ledger.rules.names import LONGEST_NAME, LONGEST_SCOPE
from ledger.rules.vocabulary import Effect
from review.accounts import LONGEST_USERNAME
from review.queries.access_words import ROLE_WORDS
from review.queries.words import EFFECT_WORDS
from review.roles import Role


class RoleForm(DecisionForm):
    """One of the roles that can be given, or taken."""

    role = forms.TypedChoiceField(
        label="Role",
        coerce=Role,
        widget=forms.RadioSelect,
        error_messages={"required": "Choose a role."},
    )
    field_order = ("username", "display_name", "role", "why")

    def __init__(self, *args: Any, roles: Iterable[Role] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = self.fields["role"]
        if isinstance(choices, forms.ChoiceField):
            choices.choices = [(role.value, f"{role.value}: {ROLE_WORDS[role]}") for role in roles]


class AdmitPersonForm(RoleForm):
    """Somebody who has an account, and their first role here."""

    username = forms.CharField(label="User name", max_length=LONGEST_USERNAME, widget=line_input())


class NewPersonForm(AdmitPersonForm):
    """An account to be, and its first role."""

    display_name = forms.CharField(
        label="Name",
        max_length=LONGEST_NAME,
        widget=line_input(),
        help_text="As colleagues know them. Rights, votes and history go by the user name.",
    )


class AwayForm(DecisionForm):
    """Until when."""

    until = forms.DateTimeField(
        label="Away until, in UTC",
        widget=forms.DateTimeInput(attrs={"class": "form-control", "type": "datetime-local"}),
        error_messages={
            "required": "Type until when: a day and a time.",
            "invalid": "Type a day and a time, for example 2026-11-30 09:00.",
        },
    )


class GiveScopeForm(DecisionForm):
    """A scope to be."""

    tools = forms.CharField(
        label="Tools",
        max_length=LONGEST_SCOPE - len("tool:"),
        initial="*",
        widget=line_input(),
        help_text="A name or a glob, for example refund.*",
    )
    effects = forms.TypedMultipleChoiceField(
        label="Effects (none: every effect)",
        coerce=Effect,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        choices=[(effect.value, f"{effect.value}: {EFFECT_WORDS[effect]}") for effect in Effect],
    )
    field_order = ("tools", "effects", "why")


class TakeScopeForm(DecisionForm):
    """One of the scopes this person has."""

    scope = forms.TypedChoiceField(
        label="Scope",
        coerce=int,
        widget=forms.RadioSelect,
        error_messages={"required": "Choose a scope."},
    )
    field_order = ("scope", "why")

    def __init__(self, *args: Any, scopes: Iterable[tuple[int, str]] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = self.fields["scope"]
        if isinstance(choices, forms.ChoiceField):
            choices.choices = list(scopes)
