"""Sent mail in a folder of an IMAP server, which is opened to be read only."""

from __future__ import annotations

import imaplib
import re
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from ledger.dialling import AddressRefused, Speaks, cut_off_in_time, dial, encrypted, unencrypted_allowed
from ledger.providers.mail_configuration import Login, Mailbox, Server
from ledger.providers.mail_sources import MOST_MAIL, StoredMail
from ledger.providers.pace import pace
from ledger.providers.reading import CredentialRefused, Unreadable

MOST_FOUND = 20
LONGEST_ANSWER = MOST_MAIL + 4_096
_DAY = timedelta(days=1)
_SIZE = re.compile(rb"RFC822\.SIZE (\d+)")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True)
class ImapSource:
    """A folder, searched by the server and compared here."""

    mailbox: Mailbox
    rate_per_s: float

    def named(self, message_id: str, *, since: datetime | None) -> list[StoredMail]:
        return self._found(["HEADER", "Message-ID", f'"{message_id}"'], since)

    def mentioning(self, message_id: str, *, since: datetime | None) -> list[StoredMail]:
        return self._found(["TEXT", f'"{message_id}"'], since)

    def _found(self, criteria: list[str], since: datetime | None) -> list[StoredMail]:
        pace(self.mailbox.server.host, self.rate_per_s)
        with _folder(self.mailbox) as imap:
            numbers = _answer(imap.uid("SEARCH", *criteria, *_since(since)))[0] or b""
            if not isinstance(numbers, bytes):
                raise Unreadable("its answer to a search cannot be read")
            uids = numbers.decode("ascii", "replace").split()
            if len(uids) > MOST_FOUND:
                raise Unreadable(f"it found {len(uids)} mails, more than are read")
            return [_fetched(imap, uid) for uid in sorted(uids, key=int)]


class _GuardedImap(imaplib.IMAP4):
    """Dials checked addresses only, and reads no more than one mail at a time."""

    sock: socket.socket | None = None  # type: ignore[assignment]

    def __init__(self, server: Server, cut_off: list[Speaks]) -> None:
        self._server = server
        cut_off.append(self)
        super().__init__(server.host, server.port)

    def _create_socket(self, _timeout: float | None) -> socket.socket:
        connection = dial(self._server.host, self._server.port)
        return encrypted(connection, self._server.host) if self._server.tls == "implicit" else connection

    def read(self, size: int) -> bytes:
        if size > LONGEST_ANSWER:
            raise Unreadable("it answers with more than it was asked for")
        return super().read(size)


@contextmanager
def _folder(mailbox: Mailbox) -> Iterator[imaplib.IMAP4]:
    """The folder, opened to be read. Raises Unreadable and what NO_ANSWER lists."""
    if mailbox.server.tls == "none" and not unencrypted_allowed():
        raise AddressRefused("mailboxes are read with TLS only here")
    try:
        with cut_off_in_time() as cut_off, _closing(_GuardedImap(mailbox.server, cut_off)) as imap:
            if mailbox.server.tls == "starttls":
                imap.starttls(ssl.create_default_context())
            if mailbox.server.login is not None:
                _log_in(imap, mailbox.server.login)
            _answer(imap.select(f'"{mailbox.folder}"', readonly=True))
            yield imap
    except (imaplib.IMAP4.error, OSError, ValueError) as error:
        raise Unreadable(f"the mailbox cannot be read: {error}"[:300]) from None


@contextmanager
def _closing(imap: imaplib.IMAP4) -> Iterator[imaplib.IMAP4]:
    try:
        yield imap
    finally:
        with suppress(imaplib.IMAP4.error, OSError):
            imap.shutdown()


def _log_in(imap: imaplib.IMAP4, login: Login) -> None:
    password = login.password()
    try:
        imap.login(login.user, password)
    except imaplib.IMAP4.abort:
        raise
    except imaplib.IMAP4.error:
        # the server's words may repeat what it was told
        raise CredentialRefused("the mailbox refused the password", login.env) from None


def _answer(said: tuple[str, Sequence[object]]) -> Sequence[object]:
    word, data = said
    if word != "OK" or not data:
        raise Unreadable(f"the mailbox answered {word}")
    return data


def _fetched(imap: imaplib.IMAP4, uid: str) -> StoredMail:
    data = _answer(imap.uid("FETCH", uid, f"(RFC822.SIZE BODY.PEEK[]<0.{MOST_MAIL}>)"))
    literal = next((part for part in data if isinstance(part, tuple) and len(part) == 2), None)
    if literal is None:
        raise Unreadable("a mail it found cannot be fetched")
    said = b" ".join([literal[0], *(part for part in data if isinstance(part, bytes))])
    size = _SIZE.search(said)
    if size is None:
        raise Unreadable("it does not say how long a mail is")
    return StoredMail(f"uid {uid}", literal[1], cut=int(size[1]) > len(literal[1]))


def _since(since: datetime | None) -> list[str]:
    """A day of IMAP is whole, and of the server's own zone."""
    if since is None:
        return []
    day = since - _DAY
    return ["SINCE", f"{day.day:02d}-{_MONTHS[day.month - 1]}-{day.year}"]
