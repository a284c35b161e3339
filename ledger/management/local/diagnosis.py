"""What is missing or unsafe on this machine, and the command that mends it."""

import stat
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import psycopg

from ledger.management.local.broker import answers
from ledger.management.local.home import CHECKOUT, OPEN_TO_OTHERS, Home
from ledger.management.local.postgres import unsafe_settings
from ledger.management.local.processes import can_run, ordinary_identities
from ledger.management.local.programs import ProgramMissing, broker_program, postgres_programs

OLDEST_SERVER = 15


@dataclass(frozen=True)
class Finding:
    """One thing looked at. `mend` is empty where all is well."""

    subject: str
    detail: str
    mend: str = ""

    @property
    def is_fault(self) -> bool:
        return bool(self.mend)


@dataclass(frozen=True)
class Machine:
    """What is examined: a home, and the addresses that replace its own servers."""

    home: Home
    environment: Mapping[str, str]

    def examine(self) -> list[Finding]:
        return [*self._home(), *self._programs(), *self._database(), *self._broker()]

    def _home(self) -> Iterator[Finding]:
        path = self.home.path
        if not path.exists():
            yield Finding("home", f"{path} does not exist yet; the first start creates it")
            return
        mode = stat.S_IMODE(path.stat().st_mode)
        mend = f"chmod 700 {path}" if mode & OPEN_TO_OTHERS else ""
        yield Finding("home", f"{path} has mode {mode:o}", mend)

    def _programs(self) -> Iterator[Finding]:
        if not self.environment.get("DATABASE_URL"):
            yield _program("postgresql", postgres_programs)
            yield self._who_runs_postgres()
        if not self.environment.get("CELERY_BROKER_URL"):
            yield _program("broker program", broker_program)

    def _who_runs_postgres(self) -> Finding:
        try:
            program = postgres_programs() / "postgres"
        except ProgramMissing as missing:
            return Finding("postgresql user", "no program to run", str(missing))
        for identity in ordinary_identities(near=CHECKOUT):
            if can_run(identity, program, writes=[]):
                return Finding("postgresql user", f"PostgreSQL runs as {identity.name}")
        return Finding(
            "postgresql user", "nobody here can run PostgreSQL", "run the ledger as an ordinary user"
        )

    def _database(self) -> Iterator[Finding]:
        own = self.home.database_url
        url = self.environment.get("DATABASE_URL") or own
        try:
            with psycopg.connect(url, connect_timeout=5) as connection:
                version = connection.info.server_version // 10000
        except psycopg.OperationalError as error:
            mend = "python manage.py up" if url == own else "start that server, or correct DATABASE_URL"
            yield Finding("database", f"does not answer: {str(error).splitlines()[0]}", mend)
            return
        mend = "" if version >= OLDEST_SERVER else f"upgrade PostgreSQL to {OLDEST_SERVER} or newer"
        yield Finding("database", f"answers, PostgreSQL {version}", mend)
        yield _durability(url)

    def _broker(self) -> Iterator[Finding]:
        if self.environment.get("CELERY_BROKER_URL"):
            return
        running = answers(self.home.broker_socket)
        detail = "answers" if running else "does not answer; due work waits"
        yield Finding("broker", detail, "" if running else "python manage.py up")


def _durability(url: str) -> Finding:
    unsafe = unsafe_settings(url)
    mends = "; ".join(
        f"psql -c 'ALTER SYSTEM SET {name} = on' -c 'SELECT pg_reload_conf()'" for name in unsafe
    )
    return Finding(
        "durability", f"off: {', '.join(unsafe)}" if unsafe else "nothing committed is lost", mends
    )


def _program(subject: str, find: Callable[[], object]) -> Finding:
    try:
        path = str(find())
    except ProgramMissing as missing:
        return Finding(subject, "missing", str(missing))
    except (OSError, subprocess.SubprocessError) as error:
        return Finding(subject, str(error), "reinstall the package")
    return Finding(subject, path)
