"""`manage.py publish_policy FILE`: validate, number and activate a policy document."""

from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ledger.management.command import Answer, Exit, LedgerCommand, Stopped, tenant_named, user_named
from ledger.management.files import read_document
from ledger.models import PolicySnapshot, Provider, Tenant
from ledger.policies import policy_of, publish_policy
from ledger.reconciliation.advice import advice_on_policy
from ledger.rules.policy import PolicyInvalid
from ledger.transactions import durable


class Command(LedgerCommand):
    help = "Publish a policy document; the highest version is in force at once."

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="a JSON file")
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument(
            "--by", default="", metavar="USERNAME", help="who edited it: they cannot approve under it"
        )

    def answer(self, *, file: Path, by: str, **options: Any) -> Answer:
        document = read_document(file)
        tenant = tenant_named(options["tenant"])
        person = user_named(by, tenant=tenant) if by else None
        try:
            snapshot, is_new = durable(lambda: publish_policy(tenant=tenant, document=document, by=person))
        except PolicyInvalid as invalid:
            raise Stopped(
                Exit.USAGE,
                f"{file} was not published: {invalid}.",
                mend="The policy in force is unchanged.",
                path=invalid.path,
                problem=invalid.problem,
            ) from invalid
        return _answer(tenant, snapshot, is_new=is_new)


def _answer(tenant: Tenant, snapshot: PolicySnapshot, *, is_new: bool) -> Answer:
    advice = advice_on_policy(snapshot)
    said = "is in force" if is_new else "has this content and was in force already; nothing was published"
    lines = [f"Policy version {snapshot.version} of {tenant.slug} {said}.", snapshot.content_hash]
    lines += [f"Warning: {each.about}: {each.problem}.\n    mend: {each.mend}" for each in advice]
    return Answer(
        "\n".join(lines),
        {
            "tenant": tenant.slug,
            "version": snapshot.version,
            "hash": snapshot.content_hash,
            "published": is_new,
            "providers_missing": _missing_providers(snapshot),
            "warnings": [asdict(each) for each in advice],
        },
    )


def _missing_providers(snapshot: PolicySnapshot) -> list[str]:
    policy = policy_of(snapshot)
    rules = [*policy.tools.values(), *([policy.default] if policy.default else [])]
    named = {rule.provider for rule in rules if rule.provider}
    known = Provider.objects.filter(tenant_id=snapshot.tenant_id, name__in=named)
    return sorted(named - set(known.values_list("name", flat=True)))
