"""What stands in the way of rules and providers, in words, and what mends it. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ledger.models import PolicySnapshot, Provider, Tenant
from ledger.policies import current_snapshot, policy_of
from ledger.providers.base import AdapterMisconfigured
from ledger.providers.registry import can_send
from ledger.rules.policy import Rule


@dataclass(frozen=True)
class Advice:
    """One thing that will not work as it stands: about what, why, and what mends it."""

    about: str
    problem: str
    mend: str


def advice_on_policy(snapshot: PolicySnapshot) -> list[Advice]:
    """Rules whose look-ups or own sends lead nowhere, because of how their provider is configured."""
    policy, slug = policy_of(snapshot), snapshot.tenant.slug
    rules = {**policy.tools, **({"*": policy.default} if policy.default else {})}
    providers = {row.name: row for row in Provider.objects.filter(tenant_id=snapshot.tenant_id)}
    return [
        Advice(f"rule {tool} of {slug}", problem, mend)
        for tool, rule in sorted(rules.items())
        for problem, mend in _problems(tool, rule, providers, slug)
    ]


def advice_on_everything() -> list[Advice]:
    """Of every active tenant: the policy in force, and providers that refuse a credential."""
    tenants = Tenant.objects.filter(suspended_at=None).order_by("slug")
    snapshots = [snapshot for tenant in tenants if (snapshot := current_snapshot(tenant.pk))]
    refusing = Provider.objects.exclude(refused_credential="").select_related("tenant").order_by("pk")
    return [
        *(advice for snapshot in snapshots for advice in advice_on_policy(snapshot)),
        *(_credential(provider) for provider in refusing),
    ]


def _problems(
    tool: str, rule: Rule, providers: Mapping[str, Provider], slug: str
) -> Iterator[tuple[str, str]]:
    if rule.provider is None:
        return
    provider = providers.get(rule.provider)
    if provider is None:
        yield (
            f"provider {rule.provider!r} is not configured: nothing can be looked up or sent through it",
            f"python manage.py add_provider --tenant {slug} {rule.provider} --adapter ADAPTER --config FILE",
        )
    else:
        yield from _problems_with(tool, rule, provider)


def _problems_with(tool: str, rule: Rule, provider: Provider) -> Iterator[tuple[str, str]]:
    page = f"see docs/adapters.md, adapter {provider.adapter}"
    try:
        sends = can_send(provider, tool)
    except AdapterMisconfigured as why:
        yield f"provider {provider.name!r} cannot be used: {why}", page
        return
    if rule.executor == "ledger" and not sends:
        yield f"provider {provider.name!r} does not say how to send: nothing will be sent", page
    lag_s = provider.config.get("lag_s", 0)
    if lag_s > rule.settle_s:
        late = f"provider {provider.name!r} shows things up to {lag_s:g} s late"
        short = f"settle_s is {rule.settle_s:g}"
        yield (
            f"{late}, and {short}: what happened could be taken for absent",
            f"set settle_s to {lag_s:g} or more",
        )


def _credential(provider: Provider) -> Advice:
    name, since = provider.refused_credential, provider.credential_refused_since
    return Advice(
        f"provider {provider.name} of {provider.tenant.slug}",
        f"refuses the credential ({name}), or shows it nothing, since {since:%Y-%m-%d %H:%M} UTC",
        f"whoever runs the ledger sets {name} to what may read there, and starts web and worker again",
    )
