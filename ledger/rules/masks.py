"""What a rule's `mask` hides: values at pointers, and the same values wherever else they turn up."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ledger.rules.canonical import canonical_bytes
from ledger.rules.pointers import pointer

MASKED = "[masked]"
SHORTEST_TEXT = 6
"""A shorter text is hidden where it stands alone, but not looked for inside other texts."""
_LONGEST_KEPT = 4_096
"""No text that was cut is longer."""


def hides(mask: Iterable[str], path: str) -> bool:
    """Is what this pointer finds a masked value, or inside one, or does it hold one?"""
    return any(f"{path}/".startswith(f"{hidden}/") or f"{hidden}/".startswith(f"{path}/") for hidden in mask)


def masked(args: Mapping[str, Any], mask: Iterable[str]) -> dict[str, Any]:
    """A copy of the arguments without the masked values."""
    paths = tuple(mask)
    copy: dict[str, Any] = json.loads(canonical_bytes(args)) if paths else dict(args)
    for path in paths:
        _hide(copy, path)
    return copy


def present(args: Mapping[str, Any] | None, mask: Iterable[str]) -> tuple[str, ...]:
    """Those pointers that find something in these arguments."""
    return tuple(path for path in mask if pointer(args, path) is not None)


@dataclass(frozen=True)
class Veil:
    """The masked values of one attempt, hidden in what others say: a provider's record, a report's words."""

    texts: tuple[str, ...] = ()
    values: frozenset[bytes] = frozenset()

    def over_text(self, text: str) -> str:
        """The text with every masked text in it hidden, and where it was cut in the midst of one, its
        beginning."""
        for hidden in self.texts:
            text = _without_beginning(text.replace(hidden, MASKED), hidden)
        return text

    def over(self, value: Any) -> Any:
        """The document with every masked value in it hidden, names aside."""
        if not self.values:
            return value
        if isinstance(value, Mapping):
            return {name: self.over(inner) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.over(inner) for inner in value]
        if canonical_bytes(value) in self.values:
            return MASKED
        return self.over_text(value) if isinstance(value, str) else value


def one_veil(veils: Iterable[Veil]) -> Veil:
    """What any of them hides, the longest texts first."""
    every = tuple(veils)
    texts = {text for veil in every for text in veil.texts}
    longest_first = tuple(sorted(texts, key=lambda text: (-len(text), text)))
    return Veil(longest_first, frozenset(value for veil in every for value in veil.values))


def veil_of(args: Mapping[str, Any] | None, mask: Iterable[str]) -> Veil:
    """The veil over what these pointers find; nothing of a hash-only intent can be known, or told."""
    leaves = [leaf for path in mask for leaf in _leaves(pointer(args, path))]
    texts = {leaf if isinstance(leaf, str) else canonical_bytes(leaf).decode() for leaf in leaves}
    spelled = {form for text in texts if len(text) >= SHORTEST_TEXT for form in _spellings(text)}
    longest_first = tuple(sorted(spelled, key=lambda text: (-len(text), text)))
    return Veil(longest_first, frozenset(canonical_bytes(leaf) for leaf in leaves))


def _spellings(text: str) -> tuple[str, ...]:
    """As it is, as JSON may write it, and each as the answers of providers are kept in ASCII."""
    forms = (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])
    characters = (form.encode("ascii", "backslashreplace").decode() for form in forms)
    octets = (form.encode().decode("ascii", "backslashreplace") for form in forms)
    return *forms, *characters, *octets


def _without_beginning(text: str, hidden: str) -> str:
    """The text without the beginning of what is hidden, where it ends in one."""
    longest = min(len(hidden) - 1, len(text), _LONGEST_KEPT)
    for length in range(longest, SHORTEST_TEXT - 1, -1):
        if text.endswith(hidden[:length]):
            return text[:-length] + MASKED
    return text


def _leaves(value: Any) -> Iterator[Any]:
    """Every single value in it that could be a secret: null, emptiness, truth, 0 and 1 are none."""
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner)
    elif value not in (None, "", True, False):
        yield value


def _hide(args: Any, path: str) -> None:
    if pointer(args, path) is None:
        return
    above, _, last = path.rpartition("/")
    holder = pointer(args, above)
    if isinstance(holder, list):
        holder[int(last)] = MASKED
    elif isinstance(holder, dict):
        holder[last.replace("~1", "/").replace("~0", "~")] = MASKED
