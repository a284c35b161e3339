"""The `smtp` adapter: finds an operation's mail by its Message-ID where sent mail is kept, and sends it.

What is found there was handed to a mail server. Whether anybody received or read it, mail cannot tell; a
report of non-delivery counts only where the configuration names the place it comes to.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from ledger.dialling import OutOfTime
from ledger.providers.base import Question, SendAnswer, SentKind
from ledger.providers.mail_bounces import refused_recipients
from ledger.providers.mail_configuration import (
    MailConfiguration,
    Maildir,
    Server,
    Source,
    check_secrets_at_hand,
    parse_mail_configuration,
)
from ledger.providers.mail_imap import ImapSource
from ledger.providers.mail_message import Mail, as_bytes, differs_in, header, mail_of, parsed
from ledger.providers.mail_sources import MaildirSource, MailSource, StoredMail
from ledger.providers.pace import held_for_s, pace
from ledger.providers.reading import LONGEST_WORD, NO_ANSWER, NO_CREDENTIAL, absent, no_answer, not_answered
from ledger.providers.smtp_submission import submit
from ledger.providers.templates import Unaskable
from ledger.rules.looked_up import LookedUp, LookedUpKind, Record

LONG_MAIL = "a mail is longer than what is read of one, so its text was not compared"


class MailAdapter:
    """One way of sending mail, as its sent mail shows it."""

    def __init__(self, configuration: MailConfiguration) -> None:
        self._configuration = configuration
        self._sent = self._source(configuration.sent)
        self._bounces = self._source(configuration.bounces) if configuration.bounces else None

    def look_up(self, question: Question) -> LookedUp:
        """Read where sent mail is kept, from shortly before the first send until now."""
        try:
            meant = mail_of(self._configuration, question)
            found = self._found(meant.message_id, self._since(question))
            refused = self._refused(meant.message_id, self._since(question))
            if found or refused:
                return self._as_found(found, refused, meant)
            return self._absent()
        except Unaskable as why:
            return LookedUp(LookedUpKind.NO_LOOKUP, detail=str(why))
        except NO_ANSWER as why:
            return no_answer(why)

    def _absent(self) -> LookedUp:
        seen = bool(self._found(self._configuration.canary, None))
        return absent(seen=seen, credential=_credential(self._configuration.sent))

    def _found(self, wanted: str, since: datetime | None) -> list[StoredMail]:
        """The mails whose Message-ID it is; an answer that quotes it is another mail."""
        stored = self._sent.named(wanted, since=since)
        return [mail for mail in stored if header(parsed(mail.raw), "message-id") == wanted]

    def _refused(self, wanted: str, since: datetime | None) -> frozenset[str]:
        """To whom it could not be delivered, as far as reports of that came back."""
        reports = self._bounces.mentioning(wanted, since=since) if self._bounces else []
        named = [refused_recipients(parsed(report.raw), wanted) for report in reports]
        return frozenset().union(*named)

    def _as_found(self, found: list[StoredMail], refused: frozenset[str], meant: Mail) -> LookedUp:
        details = {LONG_MAIL for mail in found if mail.cut and self._compares_text}
        records = [self._record(mail, copy, refused, meant) for copy, mail in enumerate(found, 1)]
        if not records:
            details.add("no copy of it was found, but a report that it was not delivered")
            kept = {"refused": sorted(refused)}
            records = [Record(reference=meant.message_id, content="other", state="failed", data=kept)]
        return LookedUp(LookedUpKind.FOUND, tuple(records), detail="; ".join(sorted(details)))

    def _record(self, stored: StoredMail, copy: int, refused: frozenset[str], meant: Mail) -> Record:
        """Refused to everybody, it failed there; refused to some, it is another mail than was meant."""
        mail, meant_to = parsed(stored.raw), {address.lower() for address in meant.recipients}
        differs = differs_in(mail, meant, self._configuration.compare)
        partly = bool(refused) and not meant_to <= refused
        kept = {
            name: header(mail, name)[: LONGEST_WORD * 4] for name in ("date", "from", "to", "cc", "subject")
        }
        unread = stored.cut and self._compares_text
        return Record(
            reference=meant.message_id if copy == 1 else f"{meant.message_id} copy {copy}",
            content="other" if differs or partly or unread else "same",
            state="failed" if refused and not partly else "done",
            data={**kept, "stored_as": stored.name, "differs": list(differs), "refused": sorted(refused)},
        )

    @property
    def _compares_text(self) -> bool:
        return bool({"text", "html"} & set(self._configuration.compare))

    def _since(self, question: Question) -> datetime | None:
        margin_s, first = self._configuration.margin_s, question.first_sent_at
        return None if margin_s is None or first is None else first - timedelta(seconds=margin_s)

    def _source(self, source: Source) -> MailSource:
        if isinstance(source, Maildir):
            return MaildirSource(source, self._configuration.most_mails)
        return ImapSource(source, self._configuration.rate_per_s)


class SendingMailAdapter(MailAdapter):
    """A configuration that also says which server takes mail."""

    def __init__(self, configuration: MailConfiguration, server: Server) -> None:
        super().__init__(configuration)
        self._server = server

    def wants_rest_s(self) -> float:
        return held_for_s(self._server.host, self._server.account)

    def send(self, call: Question) -> SendAnswer:
        """Hand the operation's mail over, with the Message-ID that every send of it has."""
        try:
            mail = mail_of(self._configuration, call)
            content = as_bytes(mail, call.first_sent_at)
        except Unaskable as why:
            return SendAnswer(kind=SentKind.REFUSED, error_class="validation", detail=f"Not sent: {why}")
        try:
            pace(self._server.host, self._configuration.rate_per_s)
        except OutOfTime as why:
            return not_answered(why)
        return submit(self._server, mail, content, our_name=self._configuration.domain)


def _credential(source: Source) -> str:
    """By what name the right to read there is configured."""
    if isinstance(source, Maildir):
        return source.env
    return source.server.login.env if source.server.login else NO_CREDENTIAL


def mail_adapter(config: object) -> MailAdapter:
    """The adapter of a stored configuration; one that can send where it says through which server."""
    configuration = parse_mail_configuration(config)
    check_secrets_at_hand(configuration)
    if configuration.send is None:
        return MailAdapter(configuration)
    return SendingMailAdapter(configuration, configuration.send)
