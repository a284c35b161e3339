"""What is meant to be done, as a block holds it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ledger.rules.canonical import read_json


@dataclass(frozen=True)
class Intent:
    """What is meant to be done. `more`: run, step, task_id, actor, requested_by, retry_of, expires_at."""

    operation_key: str
    tool: str
    args: Mapping[str, Any]
    more: Mapping[str, str | None] = field(default_factory=dict)


def strict(args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as the ledger reads them. TypeError or ValueError for what is not strict JSON."""
    return read_json(json.dumps(args, allow_nan=False, ensure_ascii=False).encode())
