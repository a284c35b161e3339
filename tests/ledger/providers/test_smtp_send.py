"""Mail handed to a real server: which answer proves what."""

from __future__ import annotations

import socket
from datetime import UTC, datetime
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import pytest

from ledger.http import all_within
from ledger.providers import AdapterMisconfigured, SentKind, smtp
from ledger.rules.looked_up import LookedUpKind
from tests.ledger.providers.mail import ARGS, configuration, id_of, question, sender
from tests.support.mailserver import DOMAIN, PASSWORD, USER, MailServer

CERTIFICATE = Path(__file__).parents[2] / "support" / "mailserver.pem"


def test_what_is_sent_is_accepted_and_found_under_the_same_reference(mail: MailServer) -> None:
    asked, adapter = question(), sender(mail)
    answer = adapter.send(asked)
    assert (answer.kind, answer.reference, answer.reachable) == (SentKind.ACCEPTED, id_of(asked), True)
    (record,) = adapter.look_up(asked).records
    assert (record.reference, record.content, record.state) == (answer.reference, "same", "done")


def test_every_send_of_an_operation_is_the_same_bytes(mail: MailServer) -> None:
    asked = question(first_sent_at=datetime(2026, 8, 11, 12, tzinfo=UTC), args={"cc": ["bob@example.org"]})
    config = {"message": {**configuration(mail)["message"], "html": "<p>{args/body}</p>"}}
    for _ in range(2):
        assert sender(mail, **config).send(asked).kind is SentKind.ACCEPTED
    stored = [path.read_bytes() for path in (mail.sent / "new").iterdir()]
    first, second = [raw for raw in stored if id_of(asked).encode() in raw]
    assert first == second
    message = message_from_bytes(first, policy=policy.default)
    assert message["To"] == ARGS["to"]
    assert message["Date"] == "Tue, 11 Aug 2026 12:00:00 +0000"
    assert mail.effects(id_of(asked)) == 2, "a mail server keeps no keys"


def test_a_long_domain_of_our_own_stays_one_word(mail: MailServer) -> None:
    domain = ".".join(["department-of-the-interior"] * 6)
    asked, adapter = question(), sender(mail, domain=domain)
    assert adapter.send(asked).kind is SentKind.ACCEPTED
    assert adapter.look_up(asked).kind is LookedUpKind.FOUND


PROVEN: list[tuple[str, str, SentKind, bool | None, int]] = [
    ("accept_then_drop", "", SentKind.UNKNOWN, False, 1),
    ("drop_before", "", SentKind.UNKNOWN, False, 0),
    ("later_content", "", SentKind.UNKNOWN, True, 0),
    ("refuse_content", "", SentKind.REFUSED, True, 0),
    ("gone", "", SentKind.NOT_SENT, False, 0),
    ("honest", "nobody@example.org", SentKind.REFUSED, True, 0),
    ("honest", "later@example.org", SentKind.NOT_SENT, True, 0),
    ("honest", "ada@example.org, nobody@example.org", SentKind.REFUSED, True, 0),
    ("honest", "ada@example.org, later@example.org", SentKind.NOT_SENT, True, 0),
]


@pytest.mark.parametrize(("mode", "to", "kind", "reachable", "effects"), PROVEN)
def test_an_answer_proves_no_more_than_it_says(
    mail: MailServer, mode: str, to: str, kind: SentKind, reachable: bool | None, effects: int
) -> None:
    """Where one recipient is refused, the others are not written to either: so that is certain, too."""
    mail.set_mode(mode)
    asked = question(args={"to": to} if to else {})
    answer = sender(mail).send(asked)
    assert (answer.kind, answer.reachable) == (kind, reachable), answer
    assert mail.effects(id_of(asked)) == effects


def test_a_server_that_never_answers_the_whole_mail_is_unknown(mail: MailServer) -> None:
    mail.set_mode("accept_then_hang")
    asked = question()
    with all_within(2.0):
        answer = sender(mail).send(asked)
    assert (answer.kind, mail.effects(id_of(asked))) == (SentKind.UNKNOWN, 1)


def test_where_no_time_is_left_nobody_is_asked(mail: MailServer) -> None:
    asked, slow = question(), sender(mail, rate_per_s=0.1)
    with all_within(5.0):
        answers = [slow.send(one) for one in (question(), asked)]
    assert [answer.kind for answer in answers] == [SentKind.ACCEPTED, SentKind.NOT_SENT]
    assert (answers[1].reachable, mail.effects(id_of(asked))) == (None, 0)


def test_where_its_turn_used_the_time_up_nobody_is_asked(
    mail: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smtp, "pace", lambda *_: True)
    with all_within(0.0):
        answer = sender(mail).send(question())
    assert (answer.kind, answer.reachable) == (SentKind.NOT_SENT, None)


def test_nobody_there_means_nothing_was_sent(mail: MailServer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = {"host": "127.0.0.1", "port": taken.getsockname()[1], "tls": "none"}
        answer = sender(mail, send=nobody).send(question())
    assert (answer.kind, answer.reachable) == (SentKind.NOT_SENT, False)


@pytest.mark.parametrize("host", ["169.254.169.254", "10.1.2.3"])
def test_an_address_that_must_not_be_asked_is_not_sent_to(mail: MailServer, host: str) -> None:
    answer = sender(mail, send={"host": host, "tls": "none"}).send(question())
    assert (answer.kind, answer.reachable) == (SentKind.NOT_SENT, None)
    assert "must not be asked" in answer.detail


UNSENDABLE: dict[str, dict[str, Any]] = {
    "another header": {"subject": "Hi\r\nBcc: eve@example.org"},
    "another recipient": {"to": "ada@example.org>\r\nRCPT TO:<eve@example.org"},
    "nobody": {"to": []},
    "no address": {"to": "ada"},
    "not a text": {"body": {"a": 1}},
    "too many": {"to": [f"u{number}@example.org" for number in range(51)]},
    "a name outside of ASCII": {"to": "jürgen@example.org"},
}


@pytest.mark.parametrize("args", UNSENDABLE.values(), ids=UNSENDABLE)
def test_what_makes_no_mail_is_not_sent(mail: MailServer, args: dict[str, Any]) -> None:
    answer = sender(mail).send(question(args=args, args_hash="any"))
    assert (answer.kind, answer.error_class, answer.reachable) == (SentKind.REFUSED, "validation", None)
    assert mail.accepted() == 0


# --- TLS and login -----------------------------------------------------------------------------------------


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A server that takes mail with TLS and a password only."""
    monkeypatch.setenv("PROVIDER_SMTP_PASSWORD", PASSWORD)
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    with MailServer(tmp_path / "closed", log_in=True, certificate=CERTIFICATE) as server:
        monkeypatch.setenv("PROVIDER_MAIL_SENT", str(server.sent))
        yield server


def through(server: MailServer, **changed: Any) -> dict[str, Any]:
    login = {"user": USER, "auth": {"env": "PROVIDER_SMTP_PASSWORD"}}
    return {"host": "127.0.0.1", "port": server.port, **login, **changed}


def test_it_logs_in_over_tls(closed: MailServer, settings: Any) -> None:
    settings.LEDGER_ALLOW_HTTP = False
    asked = question()
    assert sender(closed, send=through(closed)).send(asked).kind is SentKind.ACCEPTED
    assert closed.effects(id_of(asked)) == 1


def test_a_certificate_of_nobody_is_not_talked_to(
    closed: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    answer = sender(closed, send=through(closed)).send(question())
    assert (answer.kind, closed.accepted()) == (SentKind.NOT_SENT, 0)
    assert "certificate" in answer.detail.lower()


def test_a_server_without_the_tls_that_is_wanted_gets_nothing(mail: MailServer) -> None:
    answer = sender(mail, send={"host": "127.0.0.1", "port": mail.port}).send(question())
    assert (answer.kind, mail.accepted()) == (SentKind.NOT_SENT, 0)


def test_unencrypted_only_where_that_is_allowed(mail: MailServer, settings: Any) -> None:
    settings.LEDGER_ALLOW_HTTP = False
    answer = sender(mail).send(question())
    assert (answer.kind, answer.reachable, mail.accepted()) == (SentKind.NOT_SENT, None, 0)


def test_a_refused_password_is_named_and_the_server_left_alone(
    closed: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVIDER_SMTP_PASSWORD", "not-the-right-one")
    adapter = sender(closed, send=through(closed))
    answer = adapter.send(question())
    assert (answer.kind, answer.refused_credential) == (SentKind.NOT_SENT, "PROVIDER_SMTP_PASSWORD")
    assert "not-the-right-one" not in repr(answer)
    assert adapter.wants_rest_s() > 20


def test_a_missing_password_stops_it_before_leave(
    closed: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PROVIDER_SMTP_PASSWORD")
    with pytest.raises(AdapterMisconfigured, match="PROVIDER_SMTP_PASSWORD is not set"):
        sender(closed, send=through(closed))


def test_the_message_id_does_not_depend_on_key_or_attempt(mail: MailServer) -> None:
    asked = question()
    again = question(
        operation_key=asked.operation_key, correlation_id=asked.correlation_id, idempotency_key="generation 2"
    )
    references = {sender(mail).send(each).reference for each in (asked, again)}
    assert references == {f"<{asked.correlation_id}@{DOMAIN}>"}
