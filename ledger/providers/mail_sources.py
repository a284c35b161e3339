"""Where sent mail can be found again: a maildir of this machine.

A source says *nothing there* only after it was read to its end; whatever it could not read is Unreadable. No
mail is read beyond 256 kB.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from ledger.dialling import remaining_s
from ledger.providers.fields import from_environment
from ledger.providers.mail_configuration import Maildir
from ledger.providers.reading import Unreadable

MOST_HEAD = 65_536
MOST_MAIL = 262_144


@dataclass(frozen=True)
class StoredMail:
    """A mail as it lies there; `cut` where it is longer than what is read of one."""

    name: str
    raw: bytes
    cut: bool


class MailSource(Protocol):
    """`named`: mails whose Message-ID may be this one. `mentioning`: mails with it anywhere, as reports of
    non-delivery have it. `since` None: of whatever age. Oldest first. Raise Unreadable."""

    def named(self, message_id: str, *, since: datetime | None) -> list[StoredMail]: ...

    def mentioning(self, message_id: str, *, since: datetime | None) -> list[StoredMail]: ...


@dataclass(frozen=True)
class MaildirSource:
    """A maildir, read file by file. Its mails are moved and renamed while it is read, so its names are listed
    until every one that was seen was also opened."""

    maildir: Maildir
    most_mails: int

    def named(self, message_id: str, *, since: datetime | None) -> list[StoredMail]:
        return self._with(message_id, since, MOST_HEAD)

    def mentioning(self, message_id: str, *, since: datetime | None) -> list[StoredMail]:
        return self._with(message_id, since, MOST_MAIL)

    def _with(self, text: str, since: datetime | None, read_at_most: int) -> list[StoredMail]:
        mark = text.encode()
        files = self._files(since)
        return [mail for path in files if (mail := _if_it_has(path, mark, read_at_most)) is not None]

    def _files(self, since: datetime | None) -> list[Path]:
        """Oldest first, as their names begin with the time; each mail once, however its name ends."""
        root = Path(from_environment(self.maildir.env, "/maildir/env"))
        begins_at = since.timestamp() if since else None
        found: dict[str, Path] = {}
        # new before cur, because that is the way a mail goes; twice, because a rename hides one for a moment
        for folder in ("new", "cur", "new", "cur"):
            for path in _listed(root / folder, begins_at):
                found[path.name.partition(":")[0]] = path
                if len(found) > self.most_mails:
                    raise Unreadable(f"the maildir holds more than {self.most_mails} mails of that time")
        return [found[name] for name in sorted(found)]


def _listed(folder: Path, begins_at: float | None) -> Iterator[Path]:
    remaining_s()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(".") or not entry.is_file(follow_symlinks=False):
                    continue
                if begins_at is None or _changed_at(entry) >= begins_at:
                    yield Path(entry.path)
    except OSError as error:
        raise Unreadable(f"the maildir's {folder.name} cannot be read: {error.strerror}") from None


def _changed_at(entry: os.DirEntry[str]) -> float:
    try:
        return entry.stat(follow_symlinks=False).st_mtime
    except FileNotFoundError:
        return float("inf")  # moved meanwhile: it is found again under its other name


def _if_it_has(path: Path, mark: bytes, read_at_most: int) -> StoredMail | None:
    """The mail, where the mark stands in its beginning."""
    remaining_s()
    try:
        with _opened(path).open("rb") as file:
            head = file.read(read_at_most)
            if mark not in head:
                _check_head_is_whole(head, read_at_most, path)
                return None
            raw = head + file.read(MOST_MAIL + 1 - len(head))
    except OSError as error:
        raise Unreadable(f"a mail of the maildir cannot be read: {error.strerror}") from None
    return StoredMail(path.name.partition(":")[0], raw[:MOST_MAIL], cut=len(raw) > MOST_MAIL)


def _opened(path: Path) -> Path:
    """Where it is now: read mails move to cur, and their flags change their name."""
    if path.exists():
        return path
    base = path.name.partition(":")[0]
    moved = [*path.parent.parent.joinpath("cur").glob(f"{_literal(base)}*")]
    same = [other for other in moved if other.name.partition(":")[0] == base]
    return same[0] if same else path


def _literal(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _check_head_is_whole(head: bytes, read_at_most: int, path: Path) -> None:
    """A mail whose headers do not end might still be ours further down."""
    if len(head) < read_at_most or b"\n\n" in head or b"\r\n\r\n" in head:
        return
    if b"\nmessage-id:" not in b"\n" + head.lower():
        raise Unreadable(f"the mail {path.name.partition(':')[0]} has headers without an end")
