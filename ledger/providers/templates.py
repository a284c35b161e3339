"""Texts with placeholders: `{correlation_id}`, or `{args/invoice/id}` for something in the arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, timedelta
from urllib.parse import quote

from ledger.providers.base import Question
from ledger.rules.pointers import is_pointer, pointer

FACTS = frozenset(
    {"correlation_id", "operation_key", "idempotency_key", "provider_request_id", "args_hash", "sent_since"}
)
MARGIN = timedelta(hours=1)
"""How far before the first send a listing begins, for clocks that differ."""

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_ARGS = "args"
_WHOLE_ARGS = "{args}"


class Unaskable(Exception):
    """A placeholder has no value for this operation, so there is no question to ask."""


def problem_with(template: str) -> str | None:
    """What is wrong with a template; None for a good one."""
    for name in _PLACEHOLDER.findall(template):
        if name not in FACTS and not (name.startswith("args/") and is_pointer(name.removeprefix(_ARGS))):
            return f"{{{name}}} is no placeholder; use {', '.join(sorted(FACTS))} or args/<pointer>"
    if set(_PLACEHOLDER.sub("", template)) & {"{", "}"}:
        return "a brace stands alone"
    return None


def filled(template: str, question: Question) -> str:
    """The template with plain values. Raises Unaskable where there is none."""
    return _PLACEHOLDER.sub(lambda found: _value(found[1], question), template)


def filled_and_encoded(template: str, question: Question) -> str:
    """As filled, each value percent-encoded, so that it cannot add a part to the address."""
    return _PLACEHOLDER.sub(lambda found: quote(_segment(found[1], question), safe=""), template)


def problem_with_body(template: object) -> str | None:
    """What is wrong with a JSON template, in which texts hold placeholders; None for a good one."""
    if isinstance(template, str):
        return None if template == _WHOLE_ARGS else problem_with(template)
    if isinstance(template, Mapping):
        parts = list(template.values())
    else:
        parts = template if isinstance(template, list) else []
    return next((problem for part in parts if (problem := problem_with_body(part))), None)


def filled_body(template: object, question: Question) -> object:
    """The template with values. A text that is one placeholder becomes the value itself, of whatever type;
    `{args}` becomes all the arguments. Raises Unaskable where there is no value."""
    if isinstance(template, Mapping):
        return {name: filled_body(part, question) for name, part in template.items()}
    if isinstance(template, list):
        return [filled_body(part, question) for part in template]
    if not isinstance(template, str):
        return template
    alone = _PLACEHOLDER.fullmatch(template)
    return _whole_value(alone[1], question) if alone else filled(template, question)


def _whole_value(name: str, question: Question) -> object:
    if name in FACTS:
        return _value(name, question)
    value = pointer(question.args, name.removeprefix(_ARGS))
    if value is None:
        raise Unaskable(f"{{{name}}} is not known for this operation")
    return value


def _segment(name: str, question: Question) -> str:
    value = _value(name, question)
    if value in {".", ".."}:
        raise Unaskable(f"{{{name}}} is {value!r}, which would change the address that is asked")
    return value


def _value(name: str, question: Question) -> str:
    value = _fact(name, question) if name in FACTS else pointer(question.args, name.removeprefix(_ARGS))
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise Unaskable(f"{{{name}}} is not known for this operation")
    return str(value)


def _fact(name: str, question: Question) -> object:
    if name != "sent_since":
        return getattr(question, name)
    first = question.first_sent_at
    return first and (first - MARGIN).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
