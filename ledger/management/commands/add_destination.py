"""`manage.py add_destination NAME URL`: where one consumer hears of settlements."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.db import IntegrityError

from ledger.deliveries import add_destination
from ledger.events import SYSTEM
from ledger.http import AddressRefused, check_address
from ledger.management.command import Answer, Exit, LedgerCommand, Stopped, check_usage, tenant_named
from ledger.rules.names import name_problem, url_problem
from ledger.transactions import durable


class Command(LedgerCommand):
    help = "Add a destination for settlements. https only outside development."

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("url")
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument(
            "--ack",
            choices=["response", "explicit"],
            default="response",
            help="what counts as receipt: its 2xx answer (default), or its own ack call",
        )

    def answer(self, *, name: str, url: str, ack: str, **options: Any) -> Answer:
        check_usage(name_problem(name), f"Name {name!r}")
        check_usage(url_problem(url, https_only=not settings.DEVELOPMENT), "Address")
        try:
            check_address(url)
        except AddressRefused as why:
            raise Stopped(Exit.USAGE, f"Address: {why}.") from why
        tenant = tenant_named(options["tenant"])
        try:
            added, secret = durable(
                lambda: add_destination(tenant_id=tenant.pk, name=name, url=url, ack=ack, actor=SYSTEM)
            )
        except IntegrityError as error:
            raise Stopped(
                Exit.CONFLICT,
                f"Tenant {tenant.slug} has a destination {name!r} already; nothing was changed.",
            ) from error
        return Answer(
            f"Added destination {name} ({added.id}): it hears of every settlement from now on.\n"
            f"Its secret, shown this once: {secret}",
            {
                "destination_id": added.id,
                "tenant": tenant.slug,
                "name": name,
                "url": url,
                "ack": ack,
                "secret": secret,
            },
        )
