"""The mail adapter's configuration: every mistake is named by its place."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ledger.providers import AdapterMisconfigured, check_configuration

MAIL: dict[str, Any] = {
    "domain": "mail.example.org",
    "message": {
        "from": "b@example.org",
        "to": "{args/to}",
        "subject": "{args/subject}",
        "text": "{args/body}",
    },
    "sent": {"maildir": {"env": "PROVIDER_MAIL_SENT"}},
    "canary": "<canary@mail.example.org>",
}
IMAP = {"host": "imap.example.org", "folder": "Sent", "user": "b", "auth": {"env": "PROVIDER_IMAP"}}
MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"domain": "mail example"}, "/domain"),
    ({"canary": "canary"}, "/canary"),
    ({"message": {**MAIL["message"], "to": 7}}, "/message/to"),
    ({"message": {**MAIL["message"], "to": "{args}"}}, "/message/to"),
    ({"message": {**MAIL["message"], "bcc": "x@example.org"}}, "/message/bcc"),
    ({"message": {name: text for name, text in MAIL["message"].items() if name != "text"}}, "/message/text"),
    ({"compare": ["subject"]}, "/compare"),
    ({"compare": ["to", "html"]}, "/compare"),
    ({"sent": {}}, "/sent"),
    ({"sent": {"maildir": "/home/somebody"}}, "/sent/maildir"),
    ({"sent": {"maildir": {"env": "HOME"}}}, "/sent/maildir/env"),
    ({"sent": {"imap": {**IMAP, "folder": 'S"ent'}}}, "/sent/imap/folder"),
    ({"sent": {"imap": {**IMAP, "auth": {"env": "LEDGER_SECRET_KEY"}}}}, "/sent/imap/auth/env"),
    ({"sent": {"imap": {**IMAP, "tls": "perhaps"}}}, "/sent/imap/tls"),
    ({"send": {"host": "smtp.example.org", "port": 70_000}}, "/send/port"),
    ({"send": {"host": "smtp.example.org", "user": "b"}}, "/send/auth"),
    ({"bounces": {"imap": IMAP, "maildir": {"env": "PROVIDER_X"}}}, "/bounces"),
    ({"retries": 3}, "/retries"),
]


def test_a_whole_one_can_be_stored() -> None:
    check_configuration("smtp", MAIL)
    check_configuration("smtp", {**MAIL, "sent": {"imap": IMAP}, "bounces": {"imap": IMAP}})


@pytest.mark.parametrize(("changed", "path"), MISTAKES, ids=[path for _, path in MISTAKES])
def test_a_mistake_is_named_by_its_place(changed: dict[str, Any], path: str) -> None:
    with pytest.raises(AdapterMisconfigured) as refused:
        check_configuration("smtp", {**MAIL, **changed})
    assert refused.value.path == path


def test_what_the_documentation_shows_can_be_stored() -> None:
    page = (Path(__file__).parents[3] / "docs" / "adapters.md").read_text()
    shown = re.search(r"## `smtp`\n.*?```json\n(.*?)```", page, re.DOTALL)
    assert shown is not None
    check_configuration("smtp", json.loads(shown[1]))
