"""Reading a document an operator names, with an error that says what to mend."""

from pathlib import Path
from typing import Any

from ledger.management.command import Exit, Stopped
from ledger.rules.canonical import MOST_BYTES, MalformedJson, read_json


def read_document(path: Path) -> dict[str, Any]:
    """One JSON object from a file; `Stopped` (usage) where it cannot be read or is not one."""
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise Stopped(Exit.USAGE, f"{path} cannot be read: {error.strerror or error}.") from error
    try:
        return read_json(raw)
    except MalformedJson as malformed:
        raise Stopped(
            Exit.USAGE, f"{path} is not a JSON document we can keep: {malformed.detail}."
        ) from malformed
