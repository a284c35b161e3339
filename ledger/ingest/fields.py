"""The texts, times and numbers that come in, each with what it may be."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError, WithJsonSchema

from ledger.rules.amounts import AMOUNT_PATTERN, read_amount
from ledger.rules.canonical import is_content_hash

MOST_USAGE = 10**9
MOST_LIMIT = 10**15
MOST_SEQUENCE = 2**53 - 1

_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE)
_FIRST_YEAR, _LAST_YEAR = 2000, 2200


def _printable(text: str) -> str:
    if not text.isprintable() or _BIDI.search(text):
        raise ValueError("must hold printable characters only")
    return text


def _readable(text: str) -> str:
    _printable(re.sub(r"[\n\r\t]", " ", text))
    return text


def _one_segment(text: str) -> str:
    if "/" in text or text in {".", ".."}:
        raise ValueError("must fit one segment of an address: no /, and not . or ..")
    return text


def _hash(text: str) -> str:
    if not is_content_hash(text):
        raise ValueError("must be v1:sha256: and 64 lower-case hex digits")
    return text


def _time(value: Any) -> datetime:
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        raise ValueError("must be an RFC 3339 time with its zone, like 2026-08-11T09:30:00Z")
    try:
        read = datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("is no time of the calendar") from None
    if not _FIRST_YEAR <= read.year < _LAST_YEAR:
        raise ValueError(f"must lie between the years {_FIRST_YEAR} and {_LAST_YEAR}")
    return read


_Printable = AfterValidator(_printable)
_HASH_SCHEMA = WithJsonSchema({"type": "string", "pattern": "^v1:sha256:[0-9a-f]{64}$"})
_MONEY_SCHEMA = WithJsonSchema(
    {
        "anyOf": [{"type": "string", "pattern": f"^{AMOUNT_PATTERN}$"}, {"type": "number", "minimum": 0}],
        "examples": ["500.00"],
    }
)
_TIME_SCHEMA = WithJsonSchema({"type": "string", "format": "date-time"})

Name = Annotated[str, Field(min_length=1, max_length=255), _Printable]
"""Keys, steps, ids that others give: 1–255 printable characters, no control or bidirectional ones."""

ToolName = Annotated[str, Field(min_length=1, max_length=200), _Printable]
WorkerName = Annotated[str, Field(min_length=1, max_length=200), _Printable]
RunName = Annotated[str, Field(min_length=1, max_length=255), _Printable, AfterValidator(_one_segment)]
Reference = Annotated[str, Field(min_length=1, max_length=1000), _Printable]
FreeText = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_readable)]
ShortText = Annotated[str, Field(min_length=1, max_length=200), _Printable]
ContentHash = Annotated[str, AfterValidator(_hash), _HASH_SCHEMA]
Time = Annotated[datetime, BeforeValidator(_time), _TIME_SCHEMA]
Amount = Annotated[int, Field(ge=0, le=MOST_USAGE)]
Limit = Annotated[int, Field(ge=0, le=MOST_LIMIT)]
Money = Annotated[Decimal, BeforeValidator(read_amount), _MONEY_SCHEMA]
"""An exact amount, best written as text: a number with more digits than a double keeps is refused."""

_RUN_NAME: TypeAdapter[str] = TypeAdapter(RunName)


def run_name_problem(text: str) -> str | None:
    """Why no run can have this name; None where one can."""
    try:
        _RUN_NAME.validate_python(text, strict=True)
    except ValidationError as error:
        return sentence_of(error.errors()[0]["msg"])
    return None


def sentence_of(message: str) -> str:
    """What a validator says, without the prefixes pydantic gives it."""
    return message.removeprefix("Value error, ").removeprefix("String ")
