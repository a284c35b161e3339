"""The `smtp` adapter's configuration: JSON in, a checked value out. docs/adapters.md explains every field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ledger.providers.base import AdapterMisconfigured
from ledger.providers.fields import DAY_S, Fields, from_environment, secret_name
from ledger.providers.templates import problem_with_body

Tls = Literal["implicit", "starttls", "none"]
TLS: tuple[Tls, ...] = ("implicit", "starttls", "none")
Part = Literal["from", "to", "cc", "subject", "text", "html"]
PARTS: tuple[Part, ...] = ("from", "to", "cc", "subject", "text", "html")
NEEDED: tuple[Part, ...] = ("from", "to", "subject", "text")

USUAL_LAG_S = 120.0
USUAL_MOST_MAILS = 20_000
USUAL_RATE_PER_S = 5.0

DOMAIN = re.compile(r"(?=.{1,253}$)[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*", re.ASCII)
MESSAGE_ID = re.compile(r"<[^<>@\s\"\\]{1,200}@[^<>@\s\"\\]{1,253}>", re.ASCII)


@dataclass(frozen=True)
class Login:
    """A user name, and which environment variable holds the password."""

    user: str
    env: str

    def password(self) -> str:
        return from_environment(self.env)


@dataclass(frozen=True)
class Server:
    """Where to connect to. `tls` none: only where unencrypted connections are allowed at all."""

    host: str
    port: int
    tls: Tls
    login: Login | None

    @property
    def account(self) -> str:
        """Who is asked on whose behalf, as something to wait for."""
        return f"{self.host}:{self.port} {self.login.env if self.login else ''}"


@dataclass(frozen=True)
class Maildir:
    """A directory of this machine with `new` and `cur` in it, named by an environment variable: whoever may
    configure a provider cannot have any directory read."""

    env: str


@dataclass(frozen=True)
class Mailbox:
    """A folder of an IMAP server."""

    server: Server
    folder: str


Source = Maildir | Mailbox


@dataclass(frozen=True)
class MailConfiguration:
    """Everything the `smtp` adapter knows. `message`: part → template; `compare`: which parts of it a mail
    must show again. `bounces` None: reports of non-delivery mean nothing. `send` None: the ledger cannot send
    through it. `margin_s` None: the whole of `sent` is read, not what came since the first send."""

    domain: str
    message: Mapping[Part, object]
    compare: tuple[Part, ...]
    sent: Source
    bounces: Source | None
    canary: str
    send: Server | None
    lag_s: float
    margin_s: float | None
    most_mails: int
    rate_per_s: float

    def can_send(self, _tool: str) -> bool:
        return self.send is not None


def parse_mail_configuration(config: object) -> MailConfiguration:
    """Check the whole configuration. Raises AdapterMisconfigured at the first thing that cannot be used."""
    fields = Fields("", config)
    message, send, bounces = _message(fields.needed("message")), fields.inner("send"), fields.inner("bounces")
    parsed = MailConfiguration(
        domain=fields.matching("domain", DOMAIN, "a domain of your own, like mail.example.org,"),
        message=message,
        compare=_compare(fields, message),
        sent=_source(fields.needed("sent")),
        bounces=_source(bounces) if bounces else None,
        canary=fields.matching("canary", MESSAGE_ID, "the Message-ID of a mail that is there, <…@…>,"),
        send=_server(send, port=587, usual="starttls") if send else None,
        lag_s=fields.number("lag_s", USUAL_LAG_S, least=0, most=DAY_S),
        margin_s=fields.margin_s(),
        most_mails=int(fields.number("most_mails", USUAL_MOST_MAILS, least=1, most=1_000_000)),
        rate_per_s=fields.number("rate_per_s", USUAL_RATE_PER_S, least=0.01, most=1000),
    )
    fields.check_nothing_left()
    return parsed


def check_secrets_at_hand(configuration: MailConfiguration) -> None:
    """Raise AdapterMisconfigured unless everything the configuration only names is set here."""
    for source in filter(None, (configuration.sent, configuration.bounces)):
        if isinstance(source, Maildir):
            from_environment(source.env, "/maildir/env")
    mailboxes = [s.server for s in (configuration.sent, configuration.bounces) if isinstance(s, Mailbox)]
    for server in filter(None, (*mailboxes, configuration.send)):
        if server.login is not None:
            server.login.password()


def _message(fields: Fields) -> Mapping[Part, object]:
    message: dict[Part, object] = {}
    for part in PARTS:
        if part in NEEDED or part in fields.values:
            message[part] = _template(fields, part)
    fields.check_nothing_left()
    return message


def _template(fields: Fields, part: Part) -> object:
    """A text, or for addresses a list of texts, with placeholders."""
    template = fields.take(part)
    texts = template if isinstance(template, list) and part in ("to", "cc") else [template]
    for text in texts:
        if not isinstance(text, str):
            raise AdapterMisconfigured(fields.at(part), "a text with placeholders is needed here")
        problem = "one argument of its own is needed here" if text == "{args}" else problem_with_body(text)
        if problem:
            raise AdapterMisconfigured(fields.at(part), problem)
    return template


def _compare(fields: Fields, message: Mapping[Part, object]) -> tuple[Part, ...]:
    listed = fields.take("compare", list(message))
    if not isinstance(listed, list) or not listed or any(part not in message for part in listed):
        raise AdapterMisconfigured(fields.at("compare"), f"a list of {', '.join(message)} is needed here")
    if "to" not in listed:
        raise AdapterMisconfigured(fields.at("compare"), "who was written to is always compared: add to")
    return tuple(part for part in PARTS if part in listed)


def _source(fields: Fields) -> Source:
    kinds = list(fields.values)
    if kinds not in (["maildir"], ["imap"]):
        raise AdapterMisconfigured(fields.path, "either maildir or imap is needed here")
    within = fields.needed(kinds[0])
    return _maildir(within) if kinds == ["maildir"] else _mailbox(within)


def _maildir(fields: Fields) -> Maildir:
    maildir = Maildir(secret_name(fields))
    fields.check_nothing_left()
    return maildir


def _mailbox(fields: Fields) -> Mailbox:
    folder = fields.text("folder")
    if not folder.isascii() or not folder or set(folder) & set('"\\'):
        raise AdapterMisconfigured(fields.at("folder"), "a folder's name in ASCII is needed here, like Sent")
    return Mailbox(_server(fields, port=993, usual="implicit"), folder)


def _server(fields: Fields, *, port: int, usual: Tls) -> Server:
    """Host, port, encryption and login; nothing else may stand there."""
    server = Server(
        host=fields.matching("host", DOMAIN, "a host's name"),
        port=int(fields.number("port", port, least=1, most=65_535)),
        tls=fields.one_of("tls", TLS, usual),
        login=_login(fields),
    )
    fields.check_nothing_left()
    return server


def _login(fields: Fields) -> Login | None:
    if "user" not in fields.values and "auth" not in fields.values:
        return None
    user, auth = fields.text("user"), fields.needed("auth")
    login = Login(user, secret_name(auth))
    auth.check_nothing_left()
    return login
