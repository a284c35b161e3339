"""The consumer that docs/consumers.md shows first, as it stands there."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.ledger.client.consumer.events import NOW, SECRET_TEXT, message
from tests.support.serving import ROOT


def test_the_documented_consumer_applies_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOOKS", str(tmp_path / "books.sqlite"))
    monkeypatch.setenv("WEBHOOK_SECRET", SECRET_TEXT)
    shown = re.findall(r"```python\n(.*?)```", (ROOT / "docs/consumers.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(shown[0], names)  # noqa: S102 (our own page)
    headers, body = message()
    answers = [names["receiver"].receive(headers, body, now=NOW) for _ in range(2)]
    assert [(answer.status, answer.reason) for answer in answers] == [(200, "new"), (200, "duplicate")]
    assert names["receiver"].receive(headers, body + b" ", now=NOW).status == 400
    with closing(sqlite3.connect(tmp_path / "books.sqlite")) as books:
        assert books.execute("SELECT * FROM paid").fetchall() == [("invoice:7", "re_1")]


def test_what_is_shown_is_python() -> None:
    shown = re.findall(r"```python\n(.*?)```", (ROOT / "docs/consumers.md").read_text(), re.DOTALL)
    assert len(shown) == 4
    for block in shown:
        compile(block, "docs/consumers.md", "exec")
