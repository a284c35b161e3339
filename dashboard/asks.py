"""A form that stands open on the page of a delivery, a destination or a plan."""

from __future__ import annotations

from dataclasses import dataclass

from django import forms

from review.queries.delivery_values import PressView


@dataclass(frozen=True)
class Asked:
    """What is asked before the press. `refusal`: why the press before it did nothing; `whole_page`: its
    answer is the page itself and no fragment."""

    press: PressView
    form: forms.Form
    address: str
    back: str
    refusal: str = ""
    grave: bool = False
    whole_page: bool = False
