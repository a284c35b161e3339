"""The only code that asks a tool's provider anything. docs/adapters.md says how one is configured."""

from ledger.providers.base import (
    Adapter,
    AdapterMisconfigured,
    Question,
    SendAnswer,
    SendingAdapter,
    SentKind,
)
from ledger.providers.registry import adapter_for, check_configuration, sender_for

__all__ = [
    "Adapter",
    "AdapterMisconfigured",
    "Question",
    "SendAnswer",
    "SendingAdapter",
    "SentKind",
    "adapter_for",
    "check_configuration",
    "sender_for",
]
