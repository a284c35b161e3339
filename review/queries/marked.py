"""Text whose deceiving characters are marked: invisible, bidirectional, control, look-alike."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby


class Mark(StrEnum):
    """What is odd about a piece of text."""

    NONE = ""
    INVISIBLE = "invisible"
    BIDIRECTIONAL = "bidirectional"
    CONTROL = "control"
    LOOK_ALIKE = "look-alike"


@dataclass(frozen=True)
class Segment:
    """A piece of text; a marked one is shown as `shown`: `U+202E`, or the letter with its code."""

    text: str
    mark: Mark = Mark.NONE
    shown: str = ""
    name: str = ""


_BIDIRECTIONAL = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_INVISIBLE = frozenset(
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u200b\u200c\u200d\u2060\u2061\u2062\u2063"
    "\u2064\u3164\ufeff\uffa0\u2800"
)
_LINE_ENDS = frozenset("\n\t")
_LATIN_LIKE = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU", "FULLWIDTH", "MATHEMATICAL")


def marked_text(text: str) -> tuple[Segment, ...]:
    """The text in pieces; joining their `text` gives it back unchanged."""
    marks = _marks(text)
    segments: list[Segment] = []
    for mark, run in groupby(zip(text, marks, strict=True), key=lambda pair: pair[1]):
        letters = [letter for letter, _ in run]
        if mark is Mark.NONE:
            segments.append(Segment("".join(letters)))
        else:
            segments.extend(_marked(letter, mark) for letter in letters)
    return tuple(segments)


def deceptive_characters(segments: tuple[Segment, ...]) -> int:
    """How many characters are marked."""
    return sum(1 for segment in segments if segment.mark is not Mark.NONE)


def _marks(text: str) -> list[Mark]:
    if text.isascii() and text.isprintable():
        return [Mark.NONE] * len(text)
    latin_words = _latin_neighbourhood(text)
    return [_mark(letter, in_latin) for letter, in_latin in zip(text, latin_words, strict=True)]


def _mark(letter: str, in_latin_word: bool) -> Mark:  # noqa: FBT001
    if letter in _BIDIRECTIONAL:
        return Mark.BIDIRECTIONAL
    category = unicodedata.category(letter)
    if letter in _INVISIBLE or category in ("Cf", "Zl", "Zp") or _is_odd_space(letter, category):
        return Mark.INVISIBLE
    if category in ("Cc", "Cn", "Co") and letter not in _LINE_ENDS:
        return Mark.CONTROL
    return Mark.LOOK_ALIKE if _looks_latin(letter, in_latin_word) else Mark.NONE


def _is_odd_space(letter: str, category: str) -> bool:
    return (category == "Zs" and letter != " ") or "\ufe00" <= letter <= "\ufe0f" or letter >= "\U000e0000"


def _looks_latin(letter: str, in_latin_word: bool) -> bool:  # noqa: FBT001
    """A letter of another script in a word that has Latin letters too; styled Latin and digits anywhere."""
    if letter.isascii() or not letter.isalnum():
        return False
    script = unicodedata.name(letter, "").partition(" ")[0]
    if script in ("FULLWIDTH", "MATHEMATICAL"):
        return True
    return in_latin_word and script in _LATIN_LIKE


def _latin_neighbourhood(text: str) -> list[bool]:
    """For each character: does the word (run of letters and digits) it is part of hold a Latin letter?"""
    found: list[bool] = []
    for is_word, run in groupby(text, key=str.isalnum):
        letters = list(run)
        has_latin = is_word and any(letter.isascii() and letter.isalpha() for letter in letters)
        found.extend([has_latin] * len(letters))
    return found


def _marked(letter: str, mark: Mark) -> Segment:
    code = f"U+{ord(letter):04X}"
    shown = f"{letter} {code}" if mark is Mark.LOOK_ALIKE else code
    return Segment(letter, mark, shown, unicodedata.name(letter, "unnamed character").lower())
