"""Which adapter a provider's configuration names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ledger.providers.base import Adapter, AdapterMisconfigured, SendingAdapter
from ledger.providers.configuration import parse_configuration
from ledger.providers.http_send import http_adapter
from ledger.providers.mail_configuration import parse_mail_configuration
from ledger.providers.smtp import mail_adapter
from ledger.providers.stripe_configuration import parse_stripe_configuration
from ledger.providers.stripe_send import stripe_adapter


class ProviderRow(Protocol):
    """What is read of the stored provider."""

    name: Any
    adapter: Any
    config: Any


class Checked(Protocol):
    """What is asked of a configuration that could be stored, whatever the adapter."""

    def can_send(self, tool: str) -> bool: ...


CHECKS: Mapping[str, Callable[[object], Checked]] = {
    "http": parse_configuration,
    "smtp": parse_mail_configuration,
    "stripe": parse_stripe_configuration,
}
ADAPTERS: Mapping[str, Callable[[object], Adapter]] = {
    "http": http_adapter,
    "smtp": mail_adapter,
    "stripe": stripe_adapter,
}


def adapter_for(provider: ProviderRow) -> Adapter:
    """The adapter of a provider, ready to be asked. Raises AdapterMisconfigured."""
    _check_known(provider.adapter, f"provider {provider.name!r}")
    try:
        return ADAPTERS[provider.adapter](provider.config)
    except AdapterMisconfigured as error:
        raise AdapterMisconfigured(
            f"provider {provider.name!r}, {error.path or '/'}", error.problem
        ) from None


def sender_for(provider: ProviderRow) -> SendingAdapter:
    """The adapter of a provider, where it can send. Raises AdapterMisconfigured."""
    adapter = adapter_for(provider)
    if not isinstance(adapter, SendingAdapter):
        raise AdapterMisconfigured(
            f"provider {provider.name!r}, /send", "it does not say how to send, so the ledger cannot"
        )
    return adapter


def can_send(provider: ProviderRow, tool: str) -> bool:
    """Does its configuration say how to send what this tool (or any tool of this glob) makes? Secrets need
    not be at hand. Raises AdapterMisconfigured."""
    return check_configuration(provider.adapter, provider.config).can_send(tool)


def check_configuration(adapter: str, config: object) -> Checked:
    """Raise AdapterMisconfigured unless this could be stored. Secrets need not be at hand yet."""
    _check_known(adapter, "this provider")
    return CHECKS[adapter](config)


def _check_known(adapter: str, whose: str) -> None:
    if adapter not in ADAPTERS:
        raise AdapterMisconfigured(
            "", f"{whose} names the adapter {adapter!r}, which does not exist here; use {', '.join(ADAPTERS)}"
        )
