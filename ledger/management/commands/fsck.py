"""`manage.py fsck`: ask every invariant in one read-only snapshot."""

from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from ledger.management.command import Answer, Exit, LedgerCommand, tenant_named
from ledger.queries.invariants import INVARIANTS, Finding, broken_invariants


class Command(LedgerCommand):
    help = "Check every invariant. It only reads; exit 1 and a list where any is broken."

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", default="", metavar="SLUG", help="only this tenant (default: all)")

    def answer(self, *, tenant: str, **_options: Any) -> Answer:
        found = list(broken_invariants(tenant_named(tenant) if tenant else None))
        data = {"invariants": len(INVARIANTS), "findings": [asdict(finding) for finding in found]}
        if not found:
            return Answer(f"{len(INVARIANTS)} invariants hold.", data)
        return Answer("\n".join([*map(_line, found), _count(found)]), data, Exit.FAULT_FOUND)


def _line(finding: Finding) -> str:
    return f"{finding.invariant}: {finding.tenant or '-'} {finding.subject_id} {finding.detail}"


def _count(found: list[Finding]) -> str:
    broken = len({finding.invariant for finding in found})
    return f"{broken} of {len(INVARIANTS)} invariants are broken, in {len(found)} places."
