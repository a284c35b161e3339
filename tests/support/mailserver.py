"""A real mail server (aiosmtpd) as a process of its own, with its own disk: what it takes goes to a maildir.

    with MailServer(tmp_path) as server:
        server.set_mode("accept_then_drop")
        ...
        assert server.effects("<ilc-…@mail.test>") == 1

Every mail it takes is one line, forced to disk, in `accepted.log`, before anything else is done with it.
Recipients `nobody@…` are refused for good and `later@…` for now, in whatever mode.
"""

from __future__ import annotations

import asyncio
import mailbox
import os
import re
import shutil
import ssl
import sys
from email import message_from_bytes
from pathlib import Path
from typing import Any, Self

from tests.support.processes import wait_until
from tests.support.serving import end_with_its_starter, kill_program, start_program

DOMAIN = "mail.test"
CANARY = f"<canary@{DOMAIN}>"
USER, PASSWORD = "ledger", "mail-secret"


class MailServer:
    """The handle of one mail server process. `sent` is the maildir in which sent mail can be found again."""

    port = 0

    def __init__(self, directory: Path, *, log_in: bool = False, certificate: Path | None = None) -> None:
        self.directory = directory
        self.sent, self._spool = directory / "sent", directory / "spool"
        self._options = [str(int(log_in)), str(certificate or "")]

    def __enter__(self) -> Self:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.set_mode("honest")
        self.put(f"Message-ID: {CANARY}\nFrom: a@mail.test\nTo: b@mail.test\nSubject: canary\n\nHere.\n")
        (self.directory / "accepted.log").touch()
        self._process, said = start_program(
            "tests.support.mailserver", str(self.directory), *self._options, quiet=True
        )
        self.port = int(said)
        return self

    def __exit__(self, *_: object) -> None:
        kill_program(self._process)

    def set_mode(self, mode: str) -> None:
        """honest · accept_then_drop · accept_then_hang · drop_before · lagging (found after
        `release`) · lagging_then_drop · refuse_content · later_content · gone (421 to the sender)."""
        (self.directory / "mode").write_text(mode)

    def put(self, text: str, *, into: Path | None = None) -> str:
        """A mail that is there without having been sent; its name."""
        return mailbox.Maildir(into or self.sent).add(text.encode())

    def effects(self, message_id: str) -> int:
        """How many mails of this id it took."""
        return (self.directory / "accepted.log").read_text().split("\n").count(message_id)

    def accepted(self) -> int:
        return len((self.directory / "accepted.log").read_text().splitlines())

    def release(self) -> None:
        """The log catches up: what was taken while lagging can be found now."""
        for path in (self._spool / "new").iterdir():
            shutil.move(path, self.sent / "new" / path.name)

    def wait_for_hanging(self, within_s: float = 40.0) -> None:
        wait_until((self.directory / "hanging").exists, within_s=within_s, what="a mail hangs there")


class _Handler:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._boxes = {name: mailbox.Maildir(directory / name) for name in ("sent", "spool")}

    @property
    def _mode(self) -> str:
        return (self._directory / "mode").read_text()

    async def handle_MAIL(  # noqa: N802  (aiosmtpd's names)
        self, _server: Any, _session: Any, envelope: Any, address: str, _options: list[str]
    ) -> str:
        if self._mode == "gone":
            return "421 4.3.2 Going down"
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(  # noqa: N802  (aiosmtpd's names)
        self, _server: Any, _session: Any, envelope: Any, address: str, _options: list[str]
    ) -> str:
        if address.startswith("nobody@"):
            return "550 5.1.1 No such mailbox"
        if address.startswith("later@"):
            return "450 4.2.1 Greylisted"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        mode = self._mode
        refusals = {"refuse_content": "554 5.7.1 Not that", "later_content": "451 4.3.0 Not now"}
        if mode in refusals:
            return refusals[mode]
        if mode == "drop_before":
            server.transport.abort()
            return "250 OK"
        self._take(envelope.content, "spool" if mode.startswith("lagging") else "sent")
        if mode == "accept_then_hang":
            (self._directory / "hanging").touch()
            await asyncio.sleep(3_600)
        if mode in ("accept_then_drop", "lagging_then_drop"):
            server.transport.abort()
        return "250 2.0.0 OK: queued"

    def _take(self, content: bytes, folder: str) -> None:
        with (self._directory / "accepted.log").open("a") as log:
            log.write(f"{message_from_bytes(content)['Message-ID']}\n")
            log.flush()
            os.fsync(log.fileno())
        self._boxes[folder].add(content)


async def serve(directory: Path, *, log_in: bool, certificate: str) -> None:
    from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

    def authenticator(_server: Any, _session: Any, _envelope: Any, _mechanism: str, told: Any) -> Any:
        right = isinstance(told, LoginPassword) and told.password.decode() == PASSWORD
        return AuthResult(success=right, handled=False)

    tls = None
    if certificate:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
    handler = _Handler(directory)

    def protocol() -> Any:
        return SMTP(
            handler,
            hostname="mail.test",
            tls_context=tls,
            require_starttls=tls is not None,
            auth_required=log_in,
            auth_require_tls=tls is not None,
            authenticator=authenticator if log_in else None,
        )

    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def delivery_report(message_id: str, *recipients: str, action: str = "failed") -> str:
    """A report of RFC 3464 about these recipients, as a server sends one."""
    about = "\n".join(
        f"Final-Recipient: rfc822; {address}\nAction: {action}\nStatus: 5.1.1\n" for address in recipients
    )
    return (
        re.sub(
            r"(?m)^ {8}",
            "",
            """\
        From: MAILER-DAEMON@mail.test
        To: billing@mail.test
        Subject: Undelivered Mail Returned to Sender
        MIME-Version: 1.0
        Content-Type: multipart/report; report-type=delivery-status; boundary="XX"

        --XX
        Content-Type: text/plain

        It could not be delivered.

        --XX
        Content-Type: message/delivery-status

        Reporting-MTA: dns; mail.test

        """,
        )
        + f"""{about}
--XX
Content-Type: text/rfc822-headers

Received: from somewhere
Message-ID: {message_id}
Subject: whatever

--XX--
"""
    )


if __name__ == "__main__":
    end_with_its_starter()
    asyncio.run(serve(Path(sys.argv[1]), log_in=sys.argv[2] == "1", certificate=sys.argv[3]))
