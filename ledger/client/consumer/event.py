"""What a message of the ledger says, read from the body that was signed."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

KINDS = ("confirmed", "failed", "cancelled", "relinked")
SETTLED = frozenset(f"ledger.operation.{kind}.v1" for kind in KINDS)
"""The types that settle an operation."""

_ID = re.compile(r"[!-~]{1,64}", re.ASCII)
_LARGEST = 2**31 - 1  # what an integer column of the inbox holds


@dataclass(frozen=True)
class Event:
    """One settlement of an operation. `settlement` grows: keep the highest you have seen. `replay`: a person
    had it sent again, under the same `webhook_id`.

    A message of a type that this kit does not know is an event that is not `settles`: answer 2xx and do
    nothing. Only `webhook_id`, `type` and `document` of it are meant.
    """

    webhook_id: str
    delivery_id: str
    type: str
    operation_id: str
    operation_key: str
    outcome: str
    settlement: int
    result_ref: str | None
    replay: bool
    document: Mapping[str, Any]

    @property
    def settles(self) -> bool:
        return self.type in SETTLED


def read_event(headers: Mapping[str, str], body: bytes) -> Event:
    """Raises ValueError where the body is not as agreed."""
    try:
        document = json.loads(body)
        kind = _text(document["type"])
        return Event(
            webhook_id=_id(headers["webhook-id"]),
            delivery_id=headers.get("ledger-delivery", ""),
            type=kind,
            replay=headers.get("ledger-replay", "") == "true",
            document=document,
            **(_settlement(document) if kind in SETTLED else _NOTHING),
        )
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError("not as agreed") from error


_NOTHING: Mapping[str, Any] = {
    "operation_id": "",
    "operation_key": "",
    "outcome": "",
    "settlement": 0,
    "result_ref": None,
}


def _settlement(document: Mapping[str, Any]) -> Mapping[str, Any]:
    data, number = document["data"], document["sequence"]
    if type(number) is not int or not 0 < number <= _LARGEST:
        raise ValueError("a sequence is a number from 1")
    return {
        "operation_id": _id(document["subject"]),
        "operation_key": _text(data["operation_key"]),
        "outcome": _text(data["outcome"]),
        "settlement": number,
        "result_ref": None if data["result_ref"] is None else _text(data["result_ref"]),
    }


def _id(value: Any) -> str:
    if not _ID.fullmatch(_text(value)):
        raise ValueError("an id has 1 to 64 visible characters")
    return str(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("it is text")
    return value
