"""The only code that asks a tool's provider anything. docs/adapters.md says how one is configured."""

from ledger.providers.base import Adapter, AdapterMisconfigured, Question
from ledger.providers.registry import adapter_for, check_configuration

__all__ = ["Adapter", "AdapterMisconfigured", "Question", "adapter_for", "check_configuration"]
