"""What every command shares: one answer for people and machines, and exit codes that mean something.

0 done, 1 a check found faults, 2 wrong usage, 3 refused, 4 in conflict with what is there, 5 unavailable.
"""

from __future__ import annotations

import json
import signal
import threading
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import structlog
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, ProgrammingError, close_old_connections
from psycopg import errors

from ledger.models import Tenant, User
from ledger.transactions import Busy

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

log = structlog.get_logger(__name__)


class Exit(IntEnum):
    """How a command ended."""

    OK = 0
    FAULT_FOUND = 1
    USAGE = 2
    REFUSED = 3
    CONFLICT = 4
    UNAVAILABLE = 5


class Stopped(CommandError):
    """The command did nothing: `detail` says why, `mend` what to do about it."""

    def __init__(self, code: Exit, detail: str, *, mend: str = "", **data: object) -> None:
        super().__init__(f"{detail} {mend}".rstrip(), returncode=int(code))
        self.document = {"error": code.name.lower(), "detail": detail, "mend": mend, **data}


@dataclass(frozen=True)
class Answer:
    """What a command did: sentences for a person, the same as data for a machine."""

    text: str
    data: Mapping[str, object] = field(default_factory=dict)
    exit: Exit = Exit.OK


class LedgerCommand(BaseCommand):
    """A command answers once. With `--json` the answer, also a refusal, is one JSON object on stdout."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        self.add_own_arguments(parser)
        parser.add_argument("--json", action="store_true", help="answer with one JSON object")

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        """The arguments beside --json."""

    def answer(self, *_arguments: Any, **options: Any) -> Answer:
        """Do the work, or raise `Stopped`."""
        raise NotImplementedError

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            answer = self._answer(options)
        except Stopped as stopped:
            if options["json"]:
                self._write_json(stopped.document)
            raise
        if options["json"]:
            self._write_json(answer.data)
        else:
            self.stdout.write(answer.text)
        if answer.exit is not Exit.OK:
            raise SystemExit(int(answer.exit))

    def _answer(self, options: dict[str, Any]) -> Answer:
        try:
            return self.answer(**options)
        except Busy as busy:
            raise Stopped(Exit.UNAVAILABLE, f"Nothing was done: {busy}.", mend="Run it again.") from busy
        except (OperationalError, ProgrammingError) as error:
            raise _unavailable(error) from error

    def _write_json(self, document: Mapping[str, object]) -> None:
        self.stdout.write(json.dumps(document, ensure_ascii=False))


class LoopCommand(LedgerCommand):
    """The same pass again and again until SIGTERM or Ctrl-C; one pass with `--once`."""

    EVERY_S = 2.0

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="one pass, then stop")
        parser.add_argument(
            "--every", type=float, default=self.EVERY_S, metavar="SECONDS", help="pause between passes"
        )

    def one_pass(self) -> DataclassInstance:
        """One pass; the report's fields are counts."""
        raise NotImplementedError

    def answer(self, *, once: bool, every: float, **_options: Any) -> Answer:
        if once:
            return _report_answer(self.one_pass())
        passes = _until_stopped(self._pass_that_survives, every_s=max(every, 0.05))
        return Answer(f"Stopped after {passes} passes.", {"passes": passes})

    def _pass_that_survives(self) -> None:
        close_old_connections()
        try:
            counts = counts_of(self.one_pass())
        except (Busy, OperationalError) as error:
            log.warning("pass_failed", command=type(self).__module__, problem=str(error))
            return
        if any(counts.values()):
            self.stdout.write(json.dumps(counts))


def tenant_named(slug: str) -> Tenant:
    """The tenant of this slug; `Stopped` (usage) where there is none."""
    tenant = Tenant.objects.filter(slug=slug).first()
    if tenant is None:
        raise Stopped(
            Exit.USAGE,
            f"There is no tenant {slug!r}.",
            mend=f"Create it: python manage.py create_tenant {slug}",
        )
    return tenant


def user_named(username: str, *, tenant: Tenant) -> User:
    """The person of this user name; `Stopped` (usage) where there is none."""
    user = User.objects.filter(username=username).first()
    if user is None:
        mend = (
            f"Create one: python manage.py create_operator {username} --tenant {tenant.slug} --role operator"
        )
        raise Stopped(Exit.USAGE, f"There is no person {username!r}.", mend=mend)
    return user


def check_usage(problem: str | None, what: str) -> None:
    """Raise `Stopped` (usage) where a value has a problem."""
    if problem:
        raise Stopped(Exit.USAGE, f"{what}: {problem}.")


def _unavailable(error: Exception) -> Exception:
    if isinstance(error.__cause__, errors.UndefinedTable | errors.UndefinedColumn):
        return Stopped(
            Exit.UNAVAILABLE, "The database is not prepared.", mend="Run: python manage.py migrate"
        )
    if isinstance(error, ProgrammingError):
        return error
    mend = "Start it with `python manage.py up`, or set DATABASE_URL to a running PostgreSQL."
    return Stopped(Exit.UNAVAILABLE, f"The database does not answer: {str(error).strip()}", mend=mend)


def counts_of(report: DataclassInstance) -> dict[str, Any]:
    """A report's counts by name, as JSON can hold them. Not `asdict`: that spoils a Counter."""
    values = {named.name: getattr(report, named.name) for named in fields(report)}
    return {name: dict(value) if isinstance(value, Counter) else value for name, value in values.items()}


def _report_answer(report: DataclassInstance) -> Answer:
    counts = counts_of(report)
    return Answer(", ".join(f"{name.replace('_', ' ')}: {count}" for name, count in counts.items()), counts)


def _until_stopped(work: Callable[[], None], *, every_s: float) -> int:
    """Run `work` until a signal; a pass that has begun is finished. Returns how many passes ran."""
    stop = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGTERM, signal.SIGINT)
    }
    passes = 0
    try:
        while not stop.is_set():
            work()
            passes += 1
            stop.wait(every_s)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return passes
