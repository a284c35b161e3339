"""What a log line must not carry."""

from __future__ import annotations

import re

import structlog

_ROW = re.compile(
    r"(?:\\n|\n)?DETAIL:\s+Failing row contains .*?"
    r"(?=\n\nThe above exception|\n\nDuring handling|\nTraceback |\Z)",
    re.DOTALL,
)


def without_rows(
    _logger: structlog.typing.WrappedLogger, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Leave out the row the database describes when one of its constraints refuses it: it holds arguments."""
    return {name: _ROW.sub("", value) if isinstance(value, str) else value for name, value in event.items()}
