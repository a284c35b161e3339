"""The mail adapter, put through the part of the contract that does not depend on how a provider is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ledger.providers import Adapter, Question
from tests.ledger.providers import mail as mails
from tests.ledger.providers.contract import AnyStage, LookUpContract
from tests.support import imap, mailserver
from tests.support.imap import ImapServer
from tests.support.mailserver import MailServer


class MailStage(AnyStage):
    """A real mail server, its sent mail read from where it lies."""

    tool = mails.TOOL
    args = mails.ARGS
    secret = mailserver.PASSWORD

    def __init__(self, server: MailServer, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server, self.empty, self.monkeypatch = server, elsewhere, monkeypatch
        for folder in ("new", "cur", "tmp"):
            (elsewhere / folder).mkdir(parents=True)

    def adapter(self) -> Adapter:
        self.monkeypatch.setenv("PROVIDER_SMTP_PASSWORD", self.secret)
        login = {"user": "ledger", "auth": {"env": "PROVIDER_SMTP_PASSWORD"}}
        return mails.sender(self.server, send={"host": "127.0.0.1", "tls": "none", **login})

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        self.monkeypatch.setenv("PROVIDER_MAIL_SENT", str(self.empty))
        yield
        self.monkeypatch.setenv("PROVIDER_MAIL_SENT", str(self.server.sent))

    def effect(self, question: Question, args: Mapping[str, Any]) -> str:
        mails.sent_by_an_agent(self.server, question, args)
        copies = self.server.effects(mails.id_of(question))
        return mails.id_of(question) if copies == 1 else f"{mails.id_of(question)} copy {copies}"

    def other_args(self) -> Mapping[str, Any]:
        return {**self.args, "to": "bob@example.org"}


class ImapStage(MailStage):
    """The same, read through IMAP."""

    secret = imap.PASSWORD
    imap: ImapServer

    def adapter(self) -> Adapter:
        self.monkeypatch.setenv("PROVIDER_IMAP_PASSWORD", self.secret)
        return mails.reader(self.server, sent=mails.imap_source(self.imap))

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        self.imap.maildir = self.empty
        yield
        self.imap.maildir = self.server.sent


class TestMaildir(LookUpContract):
    @pytest.fixture
    def stage(self, mail: MailServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AnyStage:
        return MailStage(mail, tmp_path / "elsewhere", monkeypatch)


class TestImap(LookUpContract):
    @pytest.fixture
    def stage(self, mail: MailServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AnyStage]:
        stage = ImapStage(mail, tmp_path / "elsewhere", monkeypatch)
        with ImapServer(mail.sent) as stage.imap:
            yield stage
