"""A program that answers like an IMAP server about one folder, whose mails are a maildir's.

It speaks as much of RFC 3501 as a look-up asks for, and remembers what it was asked.
"""

from __future__ import annotations

import mailbox
import re
import socketserver
from pathlib import Path

from tests.support.serving import InThread

PASSWORD = "imap-secret"


class ImapServer(InThread):
    """One folder, served in threads of this process. `says` replaces the answer to a command."""

    def __init__(self, maildir: Path) -> None:
        self.maildir = maildir
        self.asked: list[str] = []
        self.says: dict[str, str] = {}
        self.drops: set[str] = set()
        server = _Server(("127.0.0.1", 0), _Handler)
        server.imap = self
        super().__init__(server)

    def mails(self) -> list[bytes]:
        """By uid, from 1."""
        box = mailbox.Maildir(self.maildir)
        return [box.get_bytes(key) for key in sorted(box.keys())]

    def answer(self, command: str, rest: str) -> tuple[list[bytes], str]:
        """Untagged lines, and how the tagged one begins."""
        if command in self.says:
            return [], self.says[command]
        match command:
            case "CAPABILITY":
                return [b"* CAPABILITY IMAP4rev1"], "OK"
            case "LOGIN":
                return [], "OK" if rest.endswith(f'"{PASSWORD}"') else "NO [AUTHENTICATIONFAILED] Invalid"
            case "EXAMINE":
                return [f"* {len(self.mails())} EXISTS".encode()], "OK [READ-ONLY]"
            case "UID SEARCH":
                return [self._search(rest)], "OK"
            case "UID FETCH":
                return [self._fetch(rest)], "OK"
            case "LOGOUT":
                return [b"* BYE"], "OK"
        return [], "BAD Unknown command"

    def _search(self, rest: str) -> bytes:
        wanted = re.search(r'"(.*?)"', rest)
        assert wanted is not None
        everywhere = rest.startswith("TEXT")
        found = [
            str(uid)
            for uid, raw in enumerate(self.mails(), 1)
            if wanted[1].encode() in (raw if everywhere else raw.partition(b"\n\n")[0])
        ]
        return " ".join(["* SEARCH", *found]).encode()

    def _fetch(self, rest: str) -> bytes:
        found = re.fullmatch(r"(\d+) \(RFC822\.SIZE BODY\.PEEK\[\]<0\.(\d+)>\)", rest)
        assert found is not None, rest
        uid, at_most = int(found[1]), int(found[2])
        raw = self.mails()[uid - 1]
        part = raw[:at_most]
        head = f"* {uid} FETCH (UID {uid} RFC822.SIZE {len(raw)} BODY[]<0> {{{len(part)}}}\r\n".encode()
        return head + part + b")"


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    imap: ImapServer


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        self.wfile.write(b"* OK ready\r\n")
        for line in self.rfile:
            tag, _, asked = line.decode().strip().partition(" ")
            self.server.imap.asked.append(asked)
            command, _, rest = asked.partition(" ")
            if command == "UID":
                word, _, rest = rest.partition(" ")
                command = f"UID {word}"
            if command in self.server.imap.drops:
                return
            untagged, said = self.server.imap.answer(command, rest)
            for part in untagged:
                self.wfile.write(part + b"\r\n")
            self.wfile.write(f"{tag} {said} done\r\n".encode())
            if command == "LOGOUT":
                return
