"""The human sentence of a send, filled from its canonical arguments only.

A placeholder is a name (`{amount}`), a dotted path (`{customer.name}`) or a pointer (`{/customer/name}`);
`{{` and `}}` are braces. Nothing is evaluated: no attributes, no conversions, no format specifications.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ledger.rules.canonical import canonical_bytes
from ledger.rules.pointers import below, is_pointer, pointer

LONGEST_TEMPLATE = 1_000
LONGEST_VALUE = 200

_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_DOTTED = re.compile(r"[^\s.!:\[\]/]+(?:\.[^\s.!:\[\]/]+)*")


def summary_problem(template: object) -> str | None:
    """What is wrong with a template, or None."""
    if not isinstance(template, str) or not 1 <= len(template) <= LONGEST_TEMPLATE:
        return f"must be a sentence of 1–{LONGEST_TEMPLATE} characters"
    for piece in _PIECE.finditer(template):
        if len(piece[0]) == 1:
            return f"has a single {piece[0]} at character {piece.start()}; write it twice"
        if piece[1] is not None and not (_DOTTED.fullmatch(piece[1]) or is_pointer(piece[1])):
            return f"has a placeholder that is no name, dotted path or pointer: {piece[0][:40]}"
    return None


def filled(
    template: str, args: Mapping[str, object] | None, *, mask: Iterable[str] = (), revealed: bool = False
) -> str:
    """The sentence. What is missing, masked or no single value shows as a visible `[…]` in its place.

    One pass: text that comes from the arguments is never read as a placeholder.
    """
    masked = () if revealed else tuple(mask)

    def fill(piece: re.Match[str]) -> str:
        return piece[0][0] if piece[1] is None else _value_text(piece[1], args, masked)

    return _PIECE.sub(fill, template)


def _value_text(name: str, args: Mapping[str, object] | None, masked: Iterable[str]) -> str:
    path = name if name.startswith("/") else _dotted_pointer(name)
    if any(f"{path}/".startswith(f"{hidden}/") for hidden in masked):
        return f"[{name} masked]"
    value = pointer(args, path)
    if value is None:
        return f"[no {name}]"
    if isinstance(value, Mapping | list | tuple):
        return f"[{name}: {len(value)} entries]"
    return _cut(value if isinstance(value, str) else canonical_bytes(value).decode())


def _dotted_pointer(name: str) -> str:
    path = ""
    for part in name.split("."):
        path = below(path, part)
    return path


def _cut(text: str) -> str:
    """The arguments are shown whole beside the sentence; a cut inside it says that it is one."""
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}… [{len(text)} characters]"
