"""Strict JSON in, canonical bytes and their hash out.

There is one reader for the whole code base. What it accepts survives being canonicalised, stored and read
again without changing its meaning; everything else is refused before anything is hashed, compared or stored.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable
from decimal import Decimal, DecimalException
from typing import Any

import rfc8785

MOST_BYTES = 262_144
MOST_DEPTH = 32
MOST_INTEGER = 2**53 - 1

_LONGEST_INTEGER = len(str(-MOST_INTEGER))
_LONGEST_QUOTE = 40
_LONGEST_PATH = 120

# A string (closed or not) is one token, so brackets inside it are not counted; possessive, so it never
# backtracks.
_NESTING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{]|[\]}]', re.DOTALL)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_CONTENT_HASH = re.compile(r"v1:sha256:[0-9a-f]{64}", re.ASCII)


class MalformedJson(ValueError):
    """The text is not JSON this ledger can store without changing it; `detail` says where and why."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class JsonTooLarge(MalformedJson):
    """The text is longer than its place allows."""


def read_json(raw: bytes, *, max_bytes: int = MOST_BYTES, max_depth: int = MOST_DEPTH) -> dict[str, Any]:
    """Read one JSON object from UTF-8 bytes.

    Raises MalformedJson (JsonTooLarge beyond `max_bytes`) for anything that is not exactly one object, nested
    at most `max_depth` deep, without duplicate names, NUL, lone surrogates, or numbers a double would change.
    """
    if len(raw) > max_bytes:
        raise JsonTooLarge(f"longer than {max_bytes} bytes")
    text = _decoded(raw)
    _check_depth(text, max_depth)
    reader = _Reader()
    value = reader.read(text)
    if reader.refused or "\\u" in text:
        _check_everywhere(value)
    if not isinstance(value, dict):
        raise MalformedJson("the top level must be an object")
    return value


def canonical_bytes(value: object) -> bytes:
    """RFC 8785 bytes of a JSON value. Raises ValueError for anything else, and for numbers beyond 2^53-1."""
    return bytes(rfc8785.dumps(value))  # type: ignore[arg-type]


def content_hash(raw: bytes) -> str:
    """`v1:sha256:<64 hex digits>` of exactly these bytes."""
    return f"v1:sha256:{hashlib.sha256(raw).hexdigest()}"


def is_content_hash(text: object) -> bool:
    """Is this text what content_hash returns for some bytes?"""
    return isinstance(text, str) and _CONTENT_HASH.fullmatch(text) is not None


def _decoded(raw: bytes) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedJson(f"not UTF-8 at byte {error.start}") from None
    if text.startswith("\ufeff"):
        raise MalformedJson("starts with a byte order mark")
    if not text.strip(" \t\r\n"):
        raise MalformedJson("empty")
    return text


def _check_depth(text: str, most: int) -> None:
    """Count open brackets without recursion: the parser would overflow the stack on what is refused here."""
    depth = 0
    for token in _NESTING.finditer(text):
        if token[0] in "[{":
            depth += 1
            if depth > most:
                raise MalformedJson(f"nested deeper than {most} at character {token.start()}")
        elif token[0] in "]}":
            depth -= 1


class _Refused:
    """Stands in the parsed value where something was refused, so that the error can name its path."""

    def __init__(self, problem: str) -> None:
        self.problem = problem


class _Reader:
    """The standard parser with hooks that leave a _Refused in place of whatever must not be stored."""

    def __init__(self) -> None:
        self.refused = False

    def read(self, text: str) -> object:
        try:
            return json.loads(
                text,
                object_pairs_hook=self._object,
                parse_int=self._integer,
                parse_float=self._decimal,
                parse_constant=self._constant,
            )
        except json.JSONDecodeError as error:
            raise MalformedJson(f"{error.msg} at character {error.pos}") from None

    def _refuse(self, problem: str) -> _Refused:
        self.refused = True
        return _Refused(problem)

    def _object(self, pairs: list[tuple[str, object]]) -> object:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        return self._refuse(f"the name {_quoted(_first_repeated(pairs))} appears twice")

    def _integer(self, literal: str) -> object:
        if len(literal) > _LONGEST_INTEGER or abs(int(literal)) > MOST_INTEGER:
            return self._refuse(f"the number {_shortened(literal)} is beyond 2^53-1")
        return int(literal)

    def _decimal(self, literal: str) -> object:
        value = float(literal)
        if not math.isfinite(value) or (value.is_integer() and abs(value) > MOST_INTEGER):
            return self._refuse(f"the number {_shortened(literal)} is beyond 2^53-1")
        if not _survives(literal, value):
            return self._refuse(f"the number {_shortened(literal)} has more digits than a double keeps")
        return value

    def _constant(self, literal: str) -> object:
        return self._refuse(f"{literal} is not a number")


def _survives(literal: str, value: float) -> bool:
    try:
        return Decimal(literal) == Decimal(repr(value))
    except DecimalException:
        return False


def _first_repeated(pairs: list[tuple[str, object]]) -> str:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            break
        seen.add(name)
    return name


def _check_everywhere(value: object) -> None:
    """Find what was refused and say where."""
    found = _first_problem(value)
    if found is not None:
        problem, path = found
        raise MalformedJson(f"{problem} at {_shortened(path, _LONGEST_PATH) or 'the top level'}")


def _first_problem(value: object) -> tuple[str, str] | None:
    """The first problem and its path, which is put together on the way out: a path for each child would hold
    a long name as many times as it has children. Depth is bounded before, and so is this recursion."""
    problem = _problem_with(value)
    if problem:
        return problem, ""
    for name, child in _children(value):
        found = _first_problem(child)
        if found is not None:
            return found[0], f"/{name}{found[1]}"
    return None


def _problem_with(value: object) -> str | None:
    if isinstance(value, _Refused):
        return value.problem
    if isinstance(value, str):
        return _unstorable(value)
    if isinstance(value, dict):
        return next(filter(None, map(_unstorable, value)), None)
    return None


def _unstorable(text: str) -> str | None:
    found = _UNSTORABLE.search(text)
    if found is None:
        return None
    return "a NUL character" if found[0] == "\x00" else "half of a surrogate pair"


def _children(value: object) -> Iterable[tuple[object, object]]:
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _quoted(text: str) -> str:
    return ascii(_shortened(text))


def _shortened(text: str, most: int = _LONGEST_QUOTE) -> str:
    """What was refused may be a secret or endless: an error shows its beginning only."""
    return text if len(text) <= most else f"{text[:most]}…"
