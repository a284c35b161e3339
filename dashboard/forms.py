"""What a person types: to sign in, to find items, to decide. Every decision wants a reason."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpRequest

LONGEST_WHY = 4000
LONGEST_REFERENCE = 255
LONGEST_ARGUMENTS = 300_000
LONGEST_PASSWORD = 1000


class SignInForm(AuthenticationForm):
    """User name and password; pasting both is welcome."""

    def __init__(self, request: HttpRequest | None = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(request, *args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["class"] = "form-control"


class NewPasswordForm(forms.Form):
    """A new password, typed twice."""

    password = forms.CharField(
        label="New password",
        strip=False,
        max_length=LONGEST_PASSWORD,
        widget=forms.PasswordInput(attrs={"class": "form-control", "autocomplete": "new-password"}),
        help_text="At least 8 characters, none of the common ones, and not like your name.",
    )
    again = forms.CharField(
        label="The same password again",
        strip=False,
        max_length=LONGEST_PASSWORD,
        widget=forms.PasswordInput(attrs={"class": "form-control", "autocomplete": "new-password"}),
    )

    def clean(self) -> dict[str, Any]:
        typed = super().clean() or {}
        if {"password", "again"} <= typed.keys() and typed["password"] != typed["again"]:
            self.add_error("again", "The two passwords differ.")
        return typed


class SetPasswordForm(NewPasswordForm):
    """With the code of the link that allows it."""

    field_order = ("code", "password", "again")
    code = forms.CharField(
        label="Code of the link",
        max_length=100,
        widget=forms.TextInput(
            attrs={
                "class": "form-control",
                "autocomplete": "off",
                "spellcheck": "false",
                "data-from-address": "",
            }
        ),
        help_text="What stands behind # in the link. It is filled in where scripts run.",
    )


class OwnPasswordForm(NewPasswordForm):
    """With the password one has."""

    field_order = ("current", "password", "again")
    current = forms.CharField(
        label="Your password now",
        strip=False,
        max_length=LONGEST_PASSWORD,
        widget=forms.PasswordInput(attrs={"class": "form-control", "autocomplete": "current-password"}),
    )


def textarea(rows: int, css: str = "", **attrs: str) -> forms.Textarea:
    return forms.Textarea(attrs={"class": f"form-control {css}".strip(), "rows": str(rows), **attrs})


def line_input() -> forms.TextInput:
    return forms.TextInput(attrs={"class": "form-control", "autocomplete": "off", "spellcheck": "false"})


def own_words(label: str, help_text: str, *, missing: str) -> forms.CharField:
    return forms.CharField(
        label=label,
        max_length=LONGEST_WHY,
        widget=textarea(3),
        help_text=help_text,
        error_messages={"required": missing},
    )


class DecisionForm(forms.Form):
    """A reason, in the person's own words. The fields of a subclass come before it."""

    why = own_words(
        "Reason",
        "Recorded with your name in the history; others decide by it later.",
        missing="Type a reason: it is recorded with the decision.",
    )
    field_order: tuple[str, ...] = (
        "reach",
        "what",
        "url",
        "to",
        "lasts",
        "until",
        "typed",
        "target_key",
        "new",
        "reference",
        "look_up",
        "new_provider_key",
        "rate_per_s",
        "why",
    )


class ApproveForm(DecisionForm):
    """`shown_digest` is what the person saw, `shown_meaning` its words: to show what has changed since.

    `password` and `press` are asked where the sign-in is not fresh and the effect is dangerous.
    """

    shown_digest = forms.CharField(widget=forms.HiddenInput, max_length=200)
    shown_meaning = forms.CharField(widget=forms.HiddenInput, required=False, strip=False)
    password = forms.CharField(
        strip=False,
        widget=forms.PasswordInput(attrs={"class": "form-control", "autocomplete": "current-password"}),
        label="Your password",
        help_text="You signed in more than 5 minutes ago, and this is a dangerous effect.",
        error_messages={"required": "Type your password again: this is a dangerous effect."},
    )
    press = forms.CharField(widget=forms.HiddenInput, required=False, max_length=100)
    new_provider_key = forms.BooleanField(
        required=False,
        label="Send with a new provider key",
        help_text=(
            "Warning: the provider then cannot tell this send from the earlier one. If that one had its "
            "effect after all, the effect happens twice."
        ),
    )


class EvidenceForm(DecisionForm):
    """What a person's word rests on: their own note, the provider's reference, a look-up of the ledger.

    What must be typed comes first: that is where the cursor stands.
    """

    reference = forms.CharField(
        required=False,
        max_length=LONGEST_REFERENCE,
        widget=line_input(),
        label="Provider’s reference",
        help_text="The id under which the provider has it, for example re_000042. May stay empty.",
    )
    look_up = forms.TypedChoiceField(
        required=False,
        coerce=int,
        empty_value=None,
        label="Attach the transcript of a look-up",
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    why = own_words(
        "Reason",
        "What you saw, and where: recorded with your name as evidence.",
        missing="Type a reason: it is recorded with the decision.",
    )
    field_order = ("what", "why", "reference", "look_up")

    def __init__(self, *args: Any, look_ups: tuple[tuple[str, str], ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = self.fields["look_up"]
        if isinstance(choices, forms.TypedChoiceField):
            choices.choices = [("", "None"), *look_ups]
        if not look_ups:
            del self.fields["look_up"]


class RejectForm(DecisionForm):
    pass


class RejectSentForm(EvidenceForm):
    """It was sent: what became of it has to be said, or said to be not known."""

    what = forms.ChoiceField(
        label="What became of what was sent?",
        widget=forms.RadioSelect,
        choices=(
            ("not_known", "Not known: it stays in review and is never sent again"),
            ("did_not", "It did not happen"),
            ("happened", "It happened"),
        ),
        error_messages={"required": "Say what became of it, or that it is not known."},
    )


class NoteForm(DecisionForm):
    why = own_words(
        "Note", "Recorded with your name in the history. It decides nothing.", missing="Type the note."
    )


class DismissForm(DecisionForm):
    why = own_words(
        "Why it needs nobody’s attention",
        "Recorded with your name. Should its operation appear after all, it is joined as ever.",
        missing="Type a reason: others must be able to follow it.",
    )


class ReferenceForm(DecisionForm):
    reference = forms.CharField(
        max_length=LONGEST_REFERENCE,
        widget=line_input(),
        label="Provider’s reference",
        help_text="The id under which the provider has it, for example re_000042.",
        error_messages={"required": "Name the provider's record: it is the evidence."},
    )


class ArgumentsForm(DecisionForm):
    typed = forms.CharField(
        max_length=LONGEST_ARGUMENTS,
        strip=False,
        widget=textarea(14, "code", spellcheck="false", autocomplete="off"),
        label="Corrected arguments",
        help_text="One JSON object, stored in canonical form. What changes is shown before it is recorded.",
        error_messages={"required": "Type the corrected arguments as one JSON object."},
    )


class OperationForm(DecisionForm):
    target_key = forms.CharField(
        max_length=255,
        widget=line_input(),
        label="Key of the operation it belongs to",
        help_text="Of the same tenant and tool; see the candidates above.",
        error_messages={"required": "Name the operation by its key."},
    )
    new = forms.BooleanField(
        required=False,
        label="Open a new operation under this key",
        help_text="Only for what was never sent: the new operation holds it for an approval of its own.",
    )


class AssignForm(DecisionForm):
    to = forms.ChoiceField(label="Give it to", widget=forms.Select(attrs={"class": "form-select"}))

    def __init__(self, *args: Any, assignees: tuple[tuple[str, str], ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = self.fields["to"]
        if isinstance(choices, forms.ChoiceField):
            choices.choices = [("", "Choose…"), *assignees]
