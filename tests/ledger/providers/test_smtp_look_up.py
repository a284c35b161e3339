"""What is read of sent mail, and what it must never be taken for."""

from __future__ import annotations

import os
import socket
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ledger.http import all_within
from ledger.providers import AdapterMisconfigured
from ledger.providers.mail_sources import MOST_MAIL
from ledger.rules.looked_up import LookedUp, LookedUpKind
from tests.ledger.providers.mail import (
    ARGS,
    id_of,
    imap_source,
    question,
    reader,
    sent_by_an_agent,
)
from tests.support.imap import PASSWORD, ImapServer
from tests.support.mailserver import DOMAIN, MailServer, delivery_report

ADA = ARGS["to"]
UNAVAILABLE, ABSENT = LookedUpKind.UNAVAILABLE, LookedUpKind.ABSENT


def only(looked_up: LookedUp) -> Any:
    (record,) = looked_up.records
    return record


def test_evidence_names_what_was_seen_and_no_text(mail: MailServer) -> None:
    asked = question()
    sent_by_an_agent(mail, asked, ARGS)
    data = only(reader(mail).look_up(asked)).data
    assert (data["subject"], data["differs"]) == (ARGS["subject"], [])
    assert "Zeile" not in repr(data)


@pytest.mark.parametrize(
    ("changed", "part"),
    [
        ({"to": "ada@example.com"}, "to"),
        ({"subject": "Ihre Rechnung für Juni"}, "subject"),
        ({"body": "Guten Tag."}, "text"),
    ],
)
def test_each_part_is_compared(mail: MailServer, changed: dict[str, str], part: str) -> None:
    asked = question()
    sent_by_an_agent(mail, asked, {**ARGS, **changed})
    record = only(reader(mail).look_up(asked))
    assert (record.content, record.data["differs"]) == ("other", [part])


def test_a_part_that_servers_change_may_be_left_out(mail: MailServer) -> None:
    asked = question()
    sent_by_an_agent(mail, asked, {**ARGS, "body": f"{ARGS['body']}\n-- \nA disclaimer"})
    assert only(reader(mail, compare=["to", "subject"]).look_up(asked)).content == "same"


def test_an_answer_to_the_mail_is_another_mail(mail: MailServer) -> None:
    asked = question()
    mail.put(f"Message-ID: <other@x>\nIn-Reply-To: {id_of(asked)}\nSubject: Re: x\n\nThanks.\n")
    assert reader(mail).look_up(asked).kind is ABSENT


def test_a_header_over_two_lines_is_read(mail: MailServer) -> None:
    asked = question()
    mail.put(f"Message-ID:\n {id_of(asked)}\nFrom: billing@{DOMAIN}\nTo: {ADA}\nSubject: a\n b\n\nx\n")
    assert only(reader(mail, compare=["to"]).look_up(asked)).content == "same"


def test_two_copies_are_two(mail: MailServer) -> None:
    asked = question()
    for _ in range(2):
        sent_by_an_agent(mail, asked, ARGS)
    assert len(reader(mail).look_up(asked).records) == 2


def test_a_read_mail_that_moved_is_found_once(mail: MailServer) -> None:
    asked = question()
    sent_by_an_agent(mail, asked, ARGS)
    for path in list((mail.sent / "new").iterdir()):
        path.rename(mail.sent / "cur" / f"{path.name}:2,S")
    assert only(reader(mail).look_up(asked)).state == "done"


def test_a_mail_too_long_to_read_is_found_and_not_called_the_same(mail: MailServer) -> None:
    asked = question(args={"body": "x" * 70 + "\n"})
    sent_by_an_agent(mail, asked, {**ARGS, "body": ("x" * 70 + "\n") * (MOST_MAIL // 50)})
    looked_up = reader(mail).look_up(asked)
    assert only(looked_up).content == "other"
    assert "longer" in looked_up.detail
    assert only(reader(mail, compare=["to", "subject"]).look_up(asked)).content == "same"


def gone(path: Path) -> None:
    path.rename(path.with_name("moved"))


def no_cur(path: Path) -> None:
    for entry in (path / "cur").iterdir():
        entry.unlink()
    (path / "cur").rmdir()


def a_file(path: Path) -> None:
    gone(path)
    path.write_text("no directory")


@pytest.mark.parametrize("harm", [gone, no_cur, a_file])
def test_a_maildir_that_cannot_be_read_is_unavailable(mail: MailServer, harm: Any) -> None:
    harm(mail.sent)
    assert reader(mail).look_up(question()).kind is UNAVAILABLE


def test_an_unreadable_mail_could_be_ours(mail: MailServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root every file can be read, so the refusal is the operating system's only in name."""
    right = Path.open

    def refuse(path: Path, *args: Any, **named: Any) -> Any:
        if path.parent.parent == mail.sent:
            raise PermissionError(13, "Permission denied")
        return right(path, *args, **named)

    monkeypatch.setattr(Path, "open", refuse)
    looked_up = reader(mail).look_up(question())
    assert (looked_up.kind, "Permission denied" in looked_up.detail) == (UNAVAILABLE, True)


def test_headers_without_an_end_could_be_ours(mail: MailServer) -> None:
    mail.put("X: y\n" * 20_000)
    assert reader(mail).look_up(question()).kind is UNAVAILABLE


def test_more_mails_than_are_read_is_unavailable(mail: MailServer) -> None:
    for number in range(3):
        mail.put(f"Message-ID: <{number}@x>\n\nx\n")
    assert reader(mail, most_mails=2).look_up(question()).kind is UNAVAILABLE


def test_only_mails_since_the_first_send_are_read_and_the_canary_whatever_its_age(mail: MailServer) -> None:
    asked = question()
    sent_by_an_agent(mail, asked, ARGS)
    for path in (mail.sent / "new").iterdir():
        os.utime(path, (1_000_000_000, 1_000_000_000))
    looked_up = reader(mail).look_up(asked)
    assert (looked_up.kind, looked_up.canary_seen) == (ABSENT, True)
    assert reader(mail, margin_s=None).look_up(asked).kind is LookedUpKind.FOUND
    assert asked.first_sent_at is not None
    long_ago = question(correlation_id=asked.correlation_id, first_sent_at=None)
    assert reader(mail).look_up(long_ago).kind is LookedUpKind.FOUND


def test_reading_ends_with_the_time_there_is(mail: MailServer) -> None:
    with all_within(0):
        assert reader(mail).look_up(question()).kind is UNAVAILABLE


def test_a_directory_is_named_by_the_machine_and_not_by_the_configuration(
    mail: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PROVIDER_MAIL_SENT")
    with pytest.raises(AdapterMisconfigured, match="PROVIDER_MAIL_SENT is not set"):
        reader(mail).look_up(question())


# --- reports of non-delivery -------------------------------------------------------------------------------


@pytest.fixture
def bounces(mail: MailServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = mail.directory / "bounces"
    monkeypatch.setenv("PROVIDER_MAIL_BOUNCES", str(path))
    mail.put("Subject: nothing\n\n", into=path)
    return path


REPORTED = {"bounces": {"maildir": {"env": "PROVIDER_MAIL_BOUNCES"}}}


def test_a_report_means_nothing_unless_it_is_configured(mail: MailServer, bounces: Path) -> None:
    asked = question()
    sent_by_an_agent(mail, asked, ARGS)
    mail.put(delivery_report(id_of(asked), ADA), into=bounces)
    assert only(reader(mail).look_up(asked)).state == "done"
    assert only(reader(mail, **REPORTED).look_up(asked)).state == "failed"


def test_a_delay_is_no_failure(mail: MailServer, bounces: Path) -> None:
    asked = question()
    sent_by_an_agent(mail, asked, ARGS)
    mail.put(delivery_report(id_of(asked), ADA, action="delayed"), into=bounces)
    assert only(reader(mail, **REPORTED).look_up(asked)).state == "done"


def test_a_report_about_another_mail_says_nothing(mail: MailServer, bounces: Path) -> None:
    asked = question()
    sent_by_an_agent(mail, asked, ARGS)
    mail.put(delivery_report("<other@x>", ADA) + f"\nPS: {id_of(asked)}\n", into=bounces)
    assert only(reader(mail, **REPORTED).look_up(asked)).state == "done"


def test_refused_to_some_is_another_mail_than_was_meant(mail: MailServer, bounces: Path) -> None:
    both = {"to": f"{ADA}, bob@example.org"}
    asked = question(args=both)
    sent_by_an_agent(mail, asked, {**ARGS, "to": f"{ADA}>, <bob@example.org"})
    assert only(reader(mail, **REPORTED).look_up(asked)).content == "same"
    mail.put(delivery_report(id_of(asked), ADA), into=bounces)
    record = only(reader(mail, **REPORTED).look_up(asked))
    assert (record.content, record.state, record.data["refused"]) == ("other", "done", [ADA])
    mail.put(delivery_report(id_of(asked), "BOB@example.org"), into=bounces)
    record = only(reader(mail, **REPORTED).look_up(asked))
    assert (record.content, record.state) == ("same", "failed")


def test_a_report_alone_is_for_a_person(mail: MailServer, bounces: Path) -> None:
    asked = question()
    mail.put(delivery_report(id_of(asked), ADA), into=bounces)
    record = only(reader(mail, **REPORTED).look_up(asked))
    assert (record.content, record.state) == ("other", "failed")


def test_reports_that_cannot_be_read_leave_it_open(mail: MailServer, bounces: Path) -> None:
    asked = question()
    sent_by_an_agent(mail, asked, ARGS)
    gone(bounces)
    assert reader(mail, **REPORTED).look_up(asked).kind is UNAVAILABLE


# --- IMAP --------------------------------------------------------------------------------------------------


@pytest.fixture
def box(mail: MailServer, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PROVIDER_IMAP_PASSWORD", PASSWORD)
    with ImapServer(mail.sent) as server:
        yield server


def asked_of(box: ImapServer) -> list[str]:
    return [line.split(" ")[0] for line in box.asked]


def test_a_mailbox_is_only_read(mail: MailServer, box: ImapServer) -> None:
    asked = question()
    sent_by_an_agent(mail, asked, ARGS)
    assert only(reader(mail, sent=imap_source(box)).look_up(asked)).content == "same"
    assert set(asked_of(box)) <= {"CAPABILITY", "LOGIN", "EXAMINE", "UID", "LOGOUT"}
    assert not any("BODY[" in line for line in box.asked), "a mail would be marked as read"


@pytest.mark.parametrize("command", ["CAPABILITY", "LOGIN", "EXAMINE", "UID SEARCH", "UID FETCH"])
@pytest.mark.parametrize("harm", ["drops", "NO", "BAD", "OK without data"])
def test_a_mailbox_that_fails_anywhere_is_unavailable(
    mail: MailServer, box: ImapServer, command: str, harm: str
) -> None:
    asked = question()
    sent_by_an_agent(mail, asked, ARGS)
    if harm == "drops":
        box.drops.add(command)
    elif not (harm == "OK without data" and command in {"LOGIN", "EXAMINE"}):
        box.says[command] = harm.split(" ", maxsplit=1)[0]
    else:
        box.says["UID FETCH"] = "OK"
    looked_up = reader(mail, sent=imap_source(box)).look_up(asked)
    assert looked_up.kind is UNAVAILABLE or (looked_up.kind is ABSENT and looked_up.canary_seen is False), (
        looked_up
    )


def test_a_refused_password_is_named_and_not_shown(
    mail: MailServer, box: ImapServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVIDER_IMAP_PASSWORD", "not-the-right-one")
    looked_up = reader(mail, sent=imap_source(box)).look_up(question())
    assert (looked_up.kind, looked_up.refused_credential) == (UNAVAILABLE, "PROVIDER_IMAP_PASSWORD")
    assert "not-the-right-one" not in repr(looked_up)


def test_an_endless_mailbox_ends_in_time(mail: MailServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says a letter again and again, so that no single read ever takes long."""
    monkeypatch.setenv("PROVIDER_IMAP_PASSWORD", PASSWORD)
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            line, _ = listening.accept()
            with line:
                line.sendall(b"* OK ")
                while not over.wait(0.05):
                    try:
                        line.sendall(b"x")
                    except OSError:
                        return

        threading.Thread(target=drip, daemon=True).start()
        source = imap_source(type("Box", (), {"port": listening.getsockname()[1]}))  # type: ignore[arg-type]
        with all_within(0.5):
            looked_up = reader(mail, sent=source).look_up(question())
        over.set()
    assert looked_up.kind is UNAVAILABLE


@pytest.mark.parametrize("changed", [{"host": "169.254.169.254"}, {"host": "localhost", "tls": "implicit"}])
def test_a_mailbox_is_dialled_as_anything_else(
    mail: MailServer, changed: dict[str, Any], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.LEDGER_PRIVATE_NETS = ()
    monkeypatch.setenv("PROVIDER_IMAP_PASSWORD", PASSWORD)
    box = type("Box", (), {"port": 993})
    source = imap_source(box, **changed)  # type: ignore[arg-type]
    with pytest.raises(Exception, match="must not be asked"):
        reader(mail, sent=source).look_up(question())


def test_nothing_goes_unencrypted_where_that_is_not_allowed(
    mail: MailServer, box: ImapServer, settings: Any
) -> None:
    settings.LEDGER_ALLOW_HTTP = False
    with pytest.raises(Exception, match="TLS only"):
        reader(mail, sent=imap_source(box)).look_up(question())
    assert box.asked == []


def test_a_listing_starts_a_day_early(mail: MailServer, box: ImapServer) -> None:
    asked = question()
    reader(mail, sent=imap_source(box), margin_s=0).look_up(asked)
    assert asked.first_sent_at is not None
    since = asked.first_sent_at - timedelta(days=1)
    assert any(f"SINCE {since:%d-%b-%Y}" in line for line in box.asked)
