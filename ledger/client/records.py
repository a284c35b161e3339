"""The lines of a spool: each a checksum and a JSON object, so that a torn or rotten line is seen."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

SUM_LENGTH = 32


@dataclass(frozen=True)
class Report:
    """One fact on its way to the ledger: the path it is posted to, and its body."""

    path: str
    body: Mapping[str, Any]

    @property
    def about(self) -> str:
        """What it is about: the attempt's part of the path. Reports about one attempt keep their order."""
        return self.path.rpartition("/")[0]


@dataclass(frozen=True)
class Kept:
    """A report under its number in the spool."""

    number: int
    report: Report


@dataclass(frozen=True)
class Spooled:
    """What a spool says: the reports nobody crossed out, in order, and the lines that cannot be read."""

    waiting: tuple[Kept, ...]
    corrupt: tuple[bytes, ...]


def keep_line(kept: Kept) -> bytes:
    return _line({"keep": kept.number, "path": kept.report.path, "body": kept.report.body})


def done_line(number: int) -> bytes:
    return _line({"done": number})


def read_spool(raw: bytes) -> Spooled:
    """Read whatever bytes are there. A line that is not whole says nothing, and hides no other line."""
    waiting: dict[int, Kept] = {}
    corrupt = []
    for line in filter(None, raw.split(b"\n")):
        said = _said(line)
        if isinstance(said, Kept):
            waiting[said.number] = said
        elif isinstance(said, int):
            waiting.pop(said, None)
        else:
            corrupt.append(line)
    return Spooled(tuple(waiting[number] for number in sorted(waiting)), tuple(corrupt))


def next_in_turn(left: Iterable[Kept], busy: Iterable[str] = ()) -> Kept | None:
    """The first report left that is about none of `busy`."""
    skipped = set(busy)
    free = (kept for kept in left if kept.report.about not in skipped)
    return min(free, key=lambda kept: kept.number, default=None)


def _line(said: Mapping[str, Any]) -> bytes:
    """It begins with a line feed too: what a torn line before it left behind stays apart."""
    text = json.dumps(said, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()
    return b"\n" + _sum(text) + b" " + text + b"\n"


def _sum(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest()[:SUM_LENGTH].encode()


def _said(line: bytes) -> Kept | int | None:
    """A kept report, the number of a delivered one, or None for what cannot be read."""
    checksum, _, text = line.partition(b" ")
    if checksum != _sum(text):
        return None
    try:
        said = json.loads(text)
        return said["done"] if "done" in said else Kept(said["keep"], Report(said["path"], said["body"]))
    except (ValueError, KeyError, TypeError):
        return None
