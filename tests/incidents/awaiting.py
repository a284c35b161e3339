"""Many attempts that nobody has heard from, and a provider that is asked about them through a bad line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ledger.http import close_connections
from ledger.models import ApiKey, Attempt, Provider, Tenant
from ledger.rules.keys import correlation_id
from ledger.rules.states import State
from tests.crash.world import ARGS, REFUND, configuration
from tests.support import make
from tests.support.provider import ProviderProcess
from tests.support.proxy import Proxy

RULE = {"effect": "payment", "idempotent": True, "key_ttl_s": 86_400, "provider": "refunds", "settle_s": 0.05}


@contextmanager
def provider_behind_a_line(directory: Path) -> Iterator[tuple[ProviderProcess, Proxy]]:
    with ProviderProcess(directory) as provider, Proxy(provider.url) as line:
        yield provider, line
        close_connections()


def asked_at(url: str, of: Tenant, **config: Any) -> None:
    """Let this tenant's refunds be looked up there."""
    make.policy(of, tools={REFUND: RULE})
    Provider.objects.create(
        tenant=of, name="refunds", adapter="http", config={**configuration(url, REFUND), **config}
    )


def lost(by: ApiKey, provider: ProviderProcess, count: int) -> None:
    """So many refunds that happened, and whose agent never heard."""
    for number in range(count):
        key = f"refund:{number}"
        metadata = {"correlation_id": correlation_id(str(by.tenant_id), key)}
        provider.send("refunds", {**ARGS[REFUND], "metadata": metadata})
        make.unknown(by, REFUND, args=ARGS[REFUND], operation_key=key)


def states(of: Tenant) -> set[str]:
    return set(Attempt.objects.filter(tenant=of).values_list("state", flat=True))


def unknown(of: Tenant) -> int:
    return Attempt.objects.filter(tenant=of, state=State.UNKNOWN).count()
