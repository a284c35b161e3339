"""One operation's mail: made of stored arguments, and recognised again where it is found.

Its Message-ID is the operation's correlation id at the configured domain: fixed by tenant and operation key,
so the first send and every later one carry the same, and whoever reads the sent mail can tell.
"""

from __future__ import annotations

import email.policy
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from email.errors import MessageError
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import format_datetime, getaddresses
from hashlib import sha256

from ledger.providers.base import Question
from ledger.providers.mail_configuration import MailConfiguration, Part
from ledger.providers.templates import Unaskable, filled_body

MOST_RECIPIENTS = 50
LONGEST_SUBJECT = 500
# Domains in ASCII and plain local parts: whatever else a server may accept, it may also read differently.
ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*", re.ASCII)

_POLICY = email.policy.SMTP.clone(cte_type="7bit", max_line_length=78)
_LENIENT = email.policy.default
_ALONE = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, kw_only=True)
class Mail:
    """What is to be sent, or was meant to be."""

    message_id: str
    sender: str
    to: tuple[str, ...]
    cc: tuple[str, ...]
    subject: str
    text: str
    html: str

    @property
    def recipients(self) -> tuple[str, ...]:
        """Whom the server is told, each once."""
        return tuple(dict.fromkeys((*self.to, *self.cc)))


def message_id(configuration: MailConfiguration, question: Question) -> str:
    """The same for every send of the operation."""
    return f"<{question.correlation_id}@{configuration.domain}>"


def mail_of(configuration: MailConfiguration, question: Question) -> Mail:
    """The operation's mail. Raises Unaskable where its arguments make none that could be sent."""
    parts = {part: _value(part, text, question) for part, text in configuration.message.items()}
    mail = Mail(
        message_id=message_id(configuration, question),
        sender=_one(_addresses(parts["from"], "from")),
        to=_addresses(parts["to"], "to"),
        cc=_addresses(parts.get("cc"), "cc"),
        subject=_text(parts["subject"], "subject"),
        text=_text(parts["text"], "text"),
        html=_text(parts.get("html"), "html"),
    )
    _check(mail)
    return mail


def as_bytes(mail: Mail, sent_at: datetime | None) -> bytes:
    """The mail as it goes over the line, the same bytes each time. Raises Unaskable."""
    message = EmailMessage(_POLICY)
    try:
        message["Message-ID"] = mail.message_id
        if sent_at is not None:
            message["Date"] = format_datetime(sent_at)
        message["From"] = mail.sender
        message["To"] = ", ".join(mail.to)
        if mail.cc:
            message["Cc"] = ", ".join(mail.cc)
        message["Subject"] = mail.subject
        message.set_content(mail.text)
        if mail.html:
            message.add_alternative(mail.html, subtype="html")
            message.set_boundary(sha256(mail.message_id.encode()).hexdigest()[:32])
        return message.as_bytes()
    except (ValueError, MessageError, UnicodeError) as why:
        raise Unaskable(f"no mail can be made of it: {why}") from None


def parsed(raw: bytes) -> EmailMessage:
    """A mail as somebody else wrote it, as far as it can be read."""
    return BytesParser(EmailMessage, policy=_LENIENT).parsebytes(raw)


def header(message: EmailMessage, name: str) -> str:
    """A header in one line; empty where it is missing or broken."""
    try:
        return " ".join(str(message.get(name, "")).split())
    except (ValueError, MessageError, IndexError, AttributeError):
        return ""


def differs_in(found: EmailMessage, meant: Mail, compare: Iterable[Part]) -> tuple[Part, ...]:
    """Which of these parts are not what was meant; texts are compared by hash, whatever wraps them."""
    return tuple(part for part in compare if _shown(found, part) != _meant(meant, part))


def _shown(found: EmailMessage, part: Part) -> object:
    if part in ("from", "to", "cc"):
        return frozenset(_alike(address) for _, address in getaddresses([header(found, part)]) if address)
    if part == "subject":
        return header(found, "subject")
    return _hash(_body(found, "plain" if part == "text" else "html"))


def _meant(meant: Mail, part: Part) -> object:
    if part == "subject":
        return " ".join(meant.subject.split())
    if part in ("text", "html"):
        return _hash(meant.text if part == "text" else meant.html)
    addresses = {"from": (meant.sender,), "to": meant.to, "cc": meant.cc}[part]
    return frozenset(_alike(address) for address in addresses)


def _body(found: EmailMessage, kind: str) -> str | None:
    """The body of that kind; None where it cannot be read, which is nobody's text."""
    try:
        body = found.get_body((kind,))
        return "" if body is None else str(body.get_content())
    except (KeyError, LookupError, ValueError, MessageError, AttributeError):
        return None


def _hash(text: str | None) -> str | None:
    """Of the text without what servers change: line ends and blanks at the end of lines."""
    if text is None:
        return None
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    return sha256("\n".join(lines).strip("\n").encode("utf-8", "surrogatepass")).hexdigest()


def _alike(address: str) -> str:
    """Case counts before the @ only."""
    local, _, domain = address.rpartition("@")
    return f"{local}@{domain.lower()}"


def _value(part: Part, template: object, question: Question) -> object:
    """A copy or an HTML text that is one argument alone may be missing."""
    alone = part in ("cc", "html") and isinstance(template, str) and _ALONE.fullmatch(template)
    try:
        return filled_body(template, question)
    except Unaskable:
        if alone and question.args is not None:
            return None
        raise


def _addresses(value: object, part: Part) -> tuple[str, ...]:
    """A text with one address or several, or a list of such, as bare addresses."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    texts = [text for text in values if isinstance(text, str) and text.isprintable()]
    if len(texts) != len(values):
        raise Unaskable(f"{part} is not an address, or a list of them")
    named = [text.strip() for whole in texts for text in whole.split(",")]
    if not all(ADDRESS.fullmatch(address) for address in named):
        raise Unaskable(f"{part} has an address that cannot be written to as it stands")
    return tuple(named)


def _one(addresses: tuple[str, ...]) -> str:
    if len(addresses) != 1:
        raise Unaskable("from is one address")
    return addresses[0]


def _text(value: object, part: Part) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise Unaskable(f"{part} is not a text")
    return str(value)


def _check(mail: Mail) -> None:
    if not mail.to:
        raise Unaskable("there is nobody to write to")
    if len(mail.recipients) > MOST_RECIPIENTS:
        raise Unaskable(f"one mail goes to {MOST_RECIPIENTS} recipients at most")
    if len(mail.subject) > LONGEST_SUBJECT or not mail.subject.isprintable():
        raise Unaskable(f"the subject is one line of at most {LONGEST_SUBJECT} characters")
