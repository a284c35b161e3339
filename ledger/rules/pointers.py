"""Finding a value in a document by its pointer, and a text by a glob."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)+")
_INDEX = re.compile(r"0|[1-9][0-9]{0,6}", re.ASCII)


def is_pointer(text: object) -> bool:
    """Is this an RFC 6901 pointer to something inside a document?"""
    return isinstance(text, str) and _POINTER.fullmatch(text) is not None


def pointer(document: object, path: str) -> Any:
    """What an RFC 6901 pointer (`/a/b`, `/list/0`, `~1` for a slash) finds; None where there is nothing."""
    found = document
    for step in steps(path):
        found = _step(found, step)
    return found


def steps(path: str) -> list[str]:
    """The names and indexes a pointer leads through."""
    return [token.replace("~1", "/").replace("~0", "~") for token in path.split("/")[1:]]


def below(path: str, name: str) -> str:
    """The pointer to `name` inside what `path` points to."""
    return f"{path}/{name.replace('~', '~0').replace('/', '~1')}"


def glob_matches(glob: str, text: str) -> bool:
    """Does the whole text match? `*` stands for any characters or none, `?` for exactly one; nothing else is
    special, and case counts. Time grows with the product of both lengths at worst."""
    at, i = 0, 0
    star, star_i = -1, 0
    while i < len(text):
        if at < len(glob) and glob[at] == "*":
            star, star_i, at = at, i, at + 1
        elif at < len(glob) and glob[at] in ("?", text[i]):
            at, i = at + 1, i + 1
        elif star >= 0:
            star_i += 1
            at, i = star + 1, star_i
        else:
            return False
    return not glob[at:].strip("*")


def _step(found: object, token: str) -> object:
    if isinstance(found, Mapping):
        return found.get(token)
    if isinstance(found, Sequence) and not isinstance(found, str) and _INDEX.fullmatch(token):
        return found[int(token)] if int(token) < len(found) else None
    return None
