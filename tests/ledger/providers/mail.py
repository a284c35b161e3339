"""What the tests of mail do again and again: configure, ask, and send as an agent of somebody else's."""

from __future__ import annotations

import smtplib
from collections.abc import Mapping
from datetime import UTC, datetime
from email.message import EmailMessage
from itertools import count
from types import SimpleNamespace
from typing import Any

from ledger.providers import Question, SendingAdapter, adapter_for, sender_for
from ledger.providers.smtp import MailAdapter
from ledger.rules.canonical import canonical_bytes, content_hash
from ledger.rules.keys import correlation_id, idempotency_key
from tests.support.imap import ImapServer
from tests.support.mailserver import CANARY, DOMAIN, MailServer

TOOL = "email.send"
ARGS: Mapping[str, Any] = {
    "to": "ada@example.org",
    "subject": "Ihre Rechnung für Mai",
    "body": "Guten Tag,\n\n.eine Zeile mit Punkt\nviele Grüße",
}
MESSAGE = {
    "from": f"billing@{DOMAIN}",
    "to": "{args/to}",
    "cc": "{args/cc}",
    "subject": "{args/subject}",
    "text": "{args/body}",
}
_numbers = count(1)


def configuration(server: MailServer, **changed: Any) -> dict[str, Any]:
    return {
        "domain": DOMAIN,
        "message": MESSAGE,
        "sent": {"maildir": {"env": "PROVIDER_MAIL_SENT"}},
        "canary": CANARY,
        "send": {"host": "127.0.0.1", "port": server.port, "tls": "none"},
        "rate_per_s": 1000,
        **changed,
    }


def reader(server: MailServer, **changed: Any) -> MailAdapter:
    config = configuration(server, **changed)
    adapter = adapter_for(SimpleNamespace(name="mail", adapter="smtp", config=config))
    assert isinstance(adapter, MailAdapter)
    return adapter


def sender(server: MailServer, **changed: Any) -> SendingAdapter:
    config = configuration(server, **changed)
    return sender_for(SimpleNamespace(name="mail", adapter="smtp", config=config))


def question(**changed: Any) -> Question:
    """About a mail that no other test has."""
    operation_key = f"mail:{next(_numbers)}"
    args = {**ARGS, **changed.pop("args", {})}
    asked: dict[str, Any] = {
        "tool": TOOL,
        "args": args,
        "args_hash": content_hash(canonical_bytes(args)),
        "operation_key": operation_key,
        "idempotency_key": idempotency_key("t1", operation_key, 1),
        "correlation_id": correlation_id("t1", operation_key),
        "first_sent_at": datetime.now(UTC),
    }
    return Question(**{**asked, **changed})


def id_of(asked: Question) -> str:
    return f"<{asked.correlation_id}@{DOMAIN}>"


def sent_by_an_agent(server: MailServer, asked: Question, args: Mapping[str, Any]) -> None:
    """The mail as a program of somebody else's writes it, which knows the Message-ID and nothing of ours."""
    message = EmailMessage()
    message["From"] = f"Billing <billing@{DOMAIN}>"
    message["To"] = f"Ada Lovelace <{args['to']}>"
    message["Subject"] = args["subject"]
    message["Message-ID"] = id_of(asked)
    message["X-Mailer"] = "somebody else's"
    message.set_content(args["body"], cte="base64")
    with smtplib.SMTP("127.0.0.1", server.port) as line:
        line.send_message(message)


def imap_source(server: ImapServer, **changed: Any) -> dict[str, Any]:
    login = {"user": "ledger", "auth": {"env": "PROVIDER_IMAP_PASSWORD"}}
    return {
        "imap": {
            "host": "127.0.0.1", "port": server.port, "tls": "none", "folder": "Sent", **login, **changed
        }
    }  # fmt: skip
