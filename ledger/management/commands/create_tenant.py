"""`manage.py create_tenant SLUG`: a tenant, and the review group that owns its questions from birth."""

from argparse import ArgumentParser
from typing import Any

from django.db import IntegrityError

from ledger.management.command import Answer, Exit, LedgerCommand, Stopped, check_usage
from ledger.models import ReviewGroup, Tenant
from ledger.rules.names import name_problem, slug_problem
from ledger.transactions import durable

FIRST_OWNER = "Review desk"


class Command(LedgerCommand):
    help = "Create a tenant with its review group."

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="its name in addresses and commands")
        parser.add_argument("--name", default="", help="its name on pages (default: the slug)")

    def answer(self, *, slug: str, name: str, **_options: Any) -> Answer:
        name = name or slug
        check_usage(slug_problem(slug), f"Slug {slug!r}")
        check_usage(name_problem(name), f"Name {name!r}")
        try:
            durable(lambda: create(slug=slug, name=name))
        except IntegrityError as error:
            raise Stopped(
                Exit.CONFLICT, f"There is a tenant {slug!r} already; nothing was changed.", tenant=slug
            ) from error
        return Answer(
            f"Created tenant {slug}. Its questions belong to the group {FIRST_OWNER!r}.",
            {"tenant": slug, "name": name, "review_group": FIRST_OWNER},
        )


def create(*, slug: str, name: str) -> Tenant:
    """Both rows, or neither. IntegrityError where the slug is taken."""
    tenant = Tenant.objects.create(slug=slug, name=name)
    ReviewGroup.objects.create(tenant=tenant, name=FIRST_OWNER, is_first_owner=True)
    return tenant
