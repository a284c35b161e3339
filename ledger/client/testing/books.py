"""What the counting provider did, one line of JSON for each effect, on its disk before it is answered."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Effect:
    """Something that happened; `id` is its reference there."""

    id: str
    path: str
    idempotency_key: str
    correlation_id: str
    body: Mapping[str, Any]


def correlation_in(body: Mapping[str, Any]) -> str:
    """The correlation id where providers usually keep it: at the top, or in `metadata`."""
    metadata = body.get("metadata")
    inside = metadata.get("correlation_id") if isinstance(metadata, Mapping) else None
    return str(body.get("correlation_id") or inside or "")


def write_effect(path: Path, effect: Effect) -> None:
    with path.open("a") as books:
        books.write(json.dumps(asdict(effect)) + "\n")
        books.flush()
        os.fsync(books.fileno())


def read_effects(path: Path) -> list[Effect]:
    """Every effect, oldest first. A last line that is being written has not happened yet."""
    text = path.read_text() if path.exists() else ""
    return [Effect(**json.loads(line)) for line in text.splitlines(keepends=True) if line.endswith("\n")]
