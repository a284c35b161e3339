"""`manage.py verify_history`: walk every chain; `--export` takes the history along, to be verified apart."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from ledger.management.command import Answer, Exit, LedgerCommand, Stopped, tenant_named
from ledger.queries.history import Chain, chains_of
from ledger.queries.snapshot import one_snapshot


@dataclass
class Walked:
    """How much was walked, and where it broke."""

    operations: int = 0
    events: int = 0
    breaks: list[dict[str, object]] = field(default_factory=list)


class Command(LedgerCommand):
    help = "Verify the hash chain of every operation; exit 1 and the place where one is broken."

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", default="", metavar="SLUG", help="only this tenant (default: all)")
        parser.add_argument(
            "--export",
            type=Path,
            metavar="FILE",
            help="write every event as a line of JSON (ledger.rules.chain)",
        )

    def answer(self, *, tenant: str, export: Path | None, **_options: Any) -> Answer:
        only = tenant_named(tenant).pk if tenant else None
        with _opened(export) as file, one_snapshot():
            walked = _walk(chains_of(only), file)
        data = {"operations": walked.operations, "events": walked.events, "breaks": walked.breaks}
        counts = f"{walked.operations} operations, {walked.events} events"
        if not walked.breaks:
            return Answer(f"{counts}: every chain is whole.", data)
        lines = [
            f"{found['operation']} at event {found['sequence']}: {found['problem']}"
            for found in walked.breaks
        ]
        return Answer(
            "\n".join([*lines, f"{counts}: {len(lines)} chains are broken."]), data, Exit.FAULT_FOUND
        )


def _walk(histories: Iterator[Chain], file: IO[str] | None) -> Walked:
    walked = Walked()
    for chain in histories:
        walked.operations += 1
        walked.events += len(chain.events)
        found = chain.find_break()
        if found is not None:
            walked.breaks.append(
                {"operation": chain.operation_id, "sequence": found.sequence, "problem": found.problem}
            )
        if file is not None:
            file.writelines(_lines(chain))
    return walked


def _lines(chain: Chain) -> Iterator[str]:
    """Each line is one `ledger.rules.chain.ChainedEvent`; `operation` says of which chain."""
    for event in chain.events:
        line = {
            "operation": chain.operation_id,
            "sequence": event.sequence,
            "previous_hash": event.previous_hash,
            "hash": event.hash,
            "fields": dict(event.fields),
        }
        yield json.dumps(line, ensure_ascii=False) + "\n"


@contextmanager
def _opened(path: Path | None) -> Iterator[IO[str] | None]:
    """The export, never over a file that is there: it may be the only older copy."""
    if path is None:
        yield None
        return
    try:
        file = path.open("x", encoding="utf-8")
    except FileExistsError as error:
        raise Stopped(Exit.CONFLICT, f"{path} is there already.", mend="Name a new file.") from error
    except OSError as error:
        raise Stopped(Exit.USAGE, f"{path} cannot be written: {error.strerror or error}.") from error
    with file:
        yield file
