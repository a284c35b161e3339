"""Arguments as they are judged: rendered from the stored bytes, compared by field, masked where told."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ledger.models import Attempt
from ledger.queries.arguments import stored_args
from ledger.rules.canonical import canonical_bytes, content_hash
from ledger.rules.masks import MASKED, hides, masked, present
from ledger.rules.pointers import below
from ledger.rules.policy import Rule
from review.queries.marked import deceptive_characters, marked_text
from review.queries.page import Arguments, Comparison, DiffSide, FieldChange
from review.queries.values import ContentHash

INLINE_BYTES = 32 * 1024
MOST_CHANGES = 100

_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|\{\}|\[\]|[{}\[\],:]|[^"{}\[\],:]+', re.DOTALL)


def arguments_of(attempt: Attempt, rule: Rule | None, *, in_full: bool = False) -> Arguments:
    """The arguments of an attempt; longer than 32 kB only where they were asked for in full."""
    stored = bytes(attempt.args_bytes) if attempt.args_bytes is not None else None
    mask = present(stored_args(attempt), rule.mask) if rule and rule.mask else ()
    shown = stored is not None and (in_full or len(stored) <= INLINE_BYTES)
    text = indented(_text(attempt, stored, mask)) if stored is not None and shown else ""
    segments = marked_text(text)
    return Arguments(
        known=stored is not None,
        text=text,
        segments=segments,
        deceptive=deceptive_characters(segments),
        size=len(stored) if stored is not None else 0,
        open_in_full=stored is not None and not shown,
        masked=mask,
        hash=ContentHash(attempt.args_hash),
        matches_hash=None if stored is None else content_hash(stored) == attempt.args_hash,
    )


def indented(canonical: str) -> str:
    """Canonical JSON with line ends and indentation between its tokens, every token as it stands."""
    pieces: list[str] = []
    depth = 0
    for piece in _TOKENS.findall(canonical):
        if piece in ("{", "["):
            depth += 1
            pieces.append(piece + _line(depth))
        elif piece in ("}", "]"):
            depth -= 1
            pieces.append(_line(depth) + piece)
        elif piece == ",":
            pieces.append("," + _line(depth))
        else:
            pieces.append(": " if piece == ":" else piece)
    return "".join(pieces)


def compared(attempt: Attempt, other: Attempt, mask: Iterable[str]) -> Comparison:
    """What is different in this attempt against another one; the server says it, nobody compares by eye."""
    before, after = stored_args(other), stored_args(attempt)
    changes: tuple[FieldChange, ...] = ()
    if before is not None and after is not None:
        changes = changes_between(before, after, tuple(mask))
    return Comparison(
        with_attempt_id=other.pk,
        with_number=other.number,
        with_hash=ContentHash(other.args_hash),
        verdict=_verdict(attempt, other, known=before is not None and after is not None),
        changes=changes[:MOST_CHANGES],
        more_changes=max(0, len(changes) - MOST_CHANGES),
    )


def changes_between(
    before: Mapping[str, Any], after: Mapping[str, Any], mask: tuple[str, ...] = ()
) -> tuple[FieldChange, ...]:
    """The fields that differ, by pointer; lists are compared place by place."""
    old, new = _leaves("", before), _leaves("", after)
    differing = [path for path in sorted({*old, *new}) if old.get(path) != new.get(path)]
    return tuple(FieldChange(path, _seen(path, old, mask), _seen(path, new, mask)) for path in differing)


def _verdict(attempt: Attempt, other: Attempt, *, known: bool) -> DiffSide:
    if attempt.args_hash == other.args_hash:
        return DiffSide.SAME
    return DiffSide.DIFFERENT if known else DiffSide.UNKNOWN


def _seen(path: str, leaves: Mapping[str, str], mask: tuple[str, ...]) -> str | None:
    if path not in leaves:
        return None
    return MASKED if hides(mask, path) else leaves[path]


def _leaves(path: str, value: object) -> dict[str, str]:
    """Pointer → canonical text of every value that holds no other; empty lists and objects are values."""
    if isinstance(value, dict) and value:
        return _all_leaves((below(path, name), child) for name, child in value.items())
    if isinstance(value, list) and value:
        return _all_leaves((f"{path}/{index}", child) for index, child in enumerate(value))
    return {path: canonical_bytes(value).decode()}


def _all_leaves(children: Iterable[tuple[str, object]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path, child in children:
        found |= _leaves(path, child)
    return found


def _text(attempt: Attempt, stored: bytes, mask: tuple[str, ...]) -> str:
    """The stored bytes themselves, unless something in them is hidden."""
    return (canonical_bytes(masked(stored_args(attempt) or {}, mask)) if mask else stored).decode()


def _line(depth: int) -> str:
    return "\n" + "  " * depth
