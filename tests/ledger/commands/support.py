"""Running a command as a machine does: `--json`, its document and its exit code."""

from __future__ import annotations

import json
from dataclasses import dataclass
from io import StringIO
from typing import Any

from django.core.management import CommandError, call_command


@dataclass(frozen=True)
class Ran:
    """How one command ended and what it said."""

    exit: int
    data: dict[str, Any]


def run(name: str, *arguments: str) -> Ran:
    """Run one command in this process with `--json`."""
    out = StringIO()
    try:
        call_command(name, *arguments, "--json", stdout=out)
    except CommandError as error:
        return Ran(error.returncode, _document(out))
    except SystemExit as ended:
        return Ran(int(ended.code or 0), _document(out))
    return Ran(0, _document(out))


def _document(out: StringIO) -> dict[str, Any]:
    text = out.getvalue()
    document: dict[str, Any] = json.loads(text) if text else {}
    return document
