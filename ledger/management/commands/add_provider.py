"""`manage.py add_provider NAME`: how to ask one provider what became of a request."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.db import IntegrityError

from ledger.management.command import Answer, Exit, LedgerCommand, Stopped, check_usage, tenant_named
from ledger.management.files import read_document
from ledger.models import Provider, Tenant
from ledger.reconciliation import AdapterMisconfigured, check_configuration
from ledger.rules.names import name_problem
from ledger.transactions import durable


class Command(LedgerCommand):
    help = "Configure a provider for look-ups; rules name it. Secrets are named in it, never stored."

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="what rules call it")
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--adapter", required=True, help="which adapter asks it: http, stripe or smtp")
        parser.add_argument("--config", required=True, type=Path, metavar="FILE", help="see docs/adapters.md")

    def answer(self, *, name: str, adapter: str, config: Path, **options: Any) -> Answer:
        check_usage(name_problem(name), f"Name {name!r}")
        document = read_document(config)
        _check(adapter, document, config)
        tenant = tenant_named(options["tenant"])
        try:
            durable(lambda: _add(tenant, name, adapter, document))
        except IntegrityError as error:
            raise Stopped(
                Exit.CONFLICT, f"Tenant {tenant.slug} has a provider {name!r} already; nothing was changed."
            ) from error
        return Answer(
            f"Added provider {name}: rules of {tenant.slug} may name it.",
            {"tenant": tenant.slug, "provider": name, "adapter": adapter},
        )


def _check(adapter: str, document: dict[str, Any], config: Path) -> None:
    try:
        check_configuration(adapter, document)
    except AdapterMisconfigured as error:
        where = f"{config} at {error.path}" if error.path else f"Adapter {adapter!r}"
        raise Stopped(
            Exit.USAGE,
            f"{where}: {error.problem}.",
            mend="docs/adapters.md explains every field.",
            path=error.path,
            problem=error.problem,
        ) from error


def _add(tenant: Tenant, name: str, adapter: str, document: dict[str, Any]) -> Provider:
    return Provider.objects.create(tenant=tenant, name=name, adapter=adapter, config=document)
