"""One mail handed to a submission server, and what each of its answers proves.

Until the server has been given the mail's content it cannot have accepted it, so whatever fails before that
proves that nobody was written to. After it only its own answer counts: taken, or refused for good. A
connection that ends without one, and a refusal *for now* of a mail it has already read, prove nothing.
"""

from __future__ import annotations

import re
import smtplib
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ledger.dialling import (
    AddressRefused,
    NotConnected,
    OutOfTime,
    Speaks,
    cut_off_in_time,
    dial,
    encrypted,
    unencrypted_allowed,
)
from ledger.providers.base import SendAnswer, SentKind
from ledger.providers.mail_configuration import Server
from ledger.providers.mail_message import Mail
from ledger.providers.pace import hold
from ledger.providers.reading import NO_CREDENTIAL

TAKEN = 250
GO_ON = 354
SERVICE_GONE = 421
LOG_IN_FIRST = frozenset({530, 534, 535, 538})
REST_AFTER_REFUSED_LOGIN = "30"
LONGEST_WORDS = 200
_DOT = re.compile(rb"^\.", re.MULTILINE)


class _Proven(Exception):
    """What is known for certain before the mail's content was given away."""

    def __init__(self, answer: SendAnswer) -> None:
        super().__init__(answer.detail)
        self.answer = answer


class _GuardedSmtp(smtplib.SMTP):
    """Dials checked addresses only."""

    sock: socket.socket | None = None

    def __init__(self, server: Server, our_name: str, cut_off: list[Speaks]) -> None:
        self._server = server
        cut_off.append(self)
        super().__init__(server.host, server.port, local_hostname=our_name)

    def _get_socket(self, host: str, port: int, _timeout: float) -> socket.socket:
        connection = dial(host, port)
        return encrypted(connection, host) if self._server.tls == "implicit" else connection


def submit(server: Server, mail: Mail, content: bytes, *, our_name: str) -> SendAnswer:
    """Hand the mail over once. Raises nothing but AdapterMisconfigured."""
    try:
        with _session(server, our_name) as smtp:
            _announce(smtp, server, mail)
            return _hand_over(smtp, mail, content)
    except _Proven as proven:
        return proven.answer
    except (AddressRefused, OutOfTime) as why:
        return SendAnswer(kind=SentKind.NOT_SENT, detail=str(why))
    except (NotConnected, smtplib.SMTPException, OSError, ValueError) as why:
        return _not_sent(f"no mail was handed over: {why}")


@contextmanager
def _session(server: Server, our_name: str) -> Iterator[smtplib.SMTP]:
    """A connection that has been greeted, encrypted and logged in."""
    if server.tls == "none" and not unencrypted_allowed():
        raise AddressRefused("mail is handed over with TLS only here")
    with cut_off_in_time() as cut_off:
        smtp = _GuardedSmtp(server, our_name, cut_off)
        try:
            smtp.ehlo_or_helo_if_needed()
            if server.tls == "starttls":
                smtp.starttls(context=ssl.create_default_context())
                smtp.ehlo_or_helo_if_needed()
            _log_in(smtp, server)
            yield smtp
        finally:
            with suppress(OSError, smtplib.SMTPException):
                smtp.putcmd("quit")
            smtp.close()


def _log_in(smtp: smtplib.SMTP, server: Server) -> None:
    if server.login is None:
        return
    password = server.login.password()
    try:
        smtp.login(server.login.user, password)
    except smtplib.SMTPAuthenticationError as refused:
        raise _Proven(_refused_login(server, refused.smtp_code)) from None


def _announce(smtp: smtplib.SMTP, server: Server, mail: Mail) -> None:
    """Name sender and recipients, and be asked for the content. Who is refused, so that not all would get it,
    ends it here: nobody gets it then. Raises _Proven."""
    _check(server, *smtp.mail(mail.sender), "the sender")
    said = [smtp.rcpt(recipient) for recipient in mail.recipients]
    refused = [(code, words) for code, words in said if code not in (250, 251)]
    if refused:
        code, words = max(refused, key=lambda answer: answer[0])
        of_all = f"{len(refused)} of {len(said)} recipients"
        _check(server, code, words, f"{of_all} (nobody was written to)")
    code, words = smtp.docmd("DATA")
    _check(server, code, words, "the mail", GO_ON)


def _check(server: Server, code: int, words: bytes, what: str, wanted: int = TAKEN) -> None:
    if code == wanted:
        return
    said = f"the server refused {what}: {code} {_shown(words)}"
    if code == SERVICE_GONE:
        hold(server.account, "")
    if code in LOG_IN_FIRST:
        raise _Proven(_refused_login(server, code))
    if code < 500:
        raise _Proven(_not_sent(said, reachable=code != SERVICE_GONE))
    raise _Proven(_refused(said))


def _hand_over(smtp: smtplib.SMTP, mail: Mail, content: bytes) -> SendAnswer:
    """From here on only the server's own last word proves anything."""
    try:
        smtp.send(_DOT.sub(b"..", content) + b".\r\n")
        code, words = smtp.getreply()
    except (smtplib.SMTPException, OSError, ValueError) as why:
        return _unknown(f"no answer to the whole mail: {type(why).__name__}: {why}", reachable=False)
    if code == TAKEN:
        return SendAnswer(kind=SentKind.ACCEPTED, reference=mail.message_id, reachable=True)
    said = f"the server answered the whole mail with {code} {_shown(words)}"
    return _refused(said) if 500 <= code < 600 else _unknown(said, reachable=code != SERVICE_GONE)


def _refused(detail: str) -> SendAnswer:
    return SendAnswer(kind=SentKind.REFUSED, error_class="refused", detail=detail, reachable=True)


def _not_sent(detail: str, *, reachable: bool = False) -> SendAnswer:
    return SendAnswer(kind=SentKind.NOT_SENT, detail=detail[:1000], reachable=reachable)


def _unknown(detail: str, *, reachable: bool) -> SendAnswer:
    return SendAnswer(kind=SentKind.UNKNOWN, detail=detail[:1000], reachable=reachable)


def _refused_login(server: Server, code: int) -> SendAnswer:
    hold(server.account, REST_AFTER_REFUSED_LOGIN)
    return SendAnswer(
        kind=SentKind.NOT_SENT,
        detail=f"the server refused the login with {code}; no mail was handed over",
        reachable=True,
        refused_credential=server.login.env if server.login else NO_CREDENTIAL,
    )


def _shown(words: bytes) -> str:
    return words.decode("ascii", "backslashreplace")[:LONGEST_WORDS]
