"""A PostgreSQL server of our own: created once, started, asked whether it is ready, and never unsafe.

Only the programs are taken from elsewhere. Connections come through a Unix socket in a directory of mode
0700, so the server trusts whoever gets there.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, LiteralString

import psycopg
from psycopg import sql

from ledger.management.local.home import CHECKOUT, Home, private_directory
from ledger.management.local.processes import (
    Identity,
    NobodyCanRun,
    can_run,
    ordinary_identities,
    run,
    start,
)
from ledger.management.local.programs import postgres_programs

USER = "ledger"
DATABASE = "ledger"
DURABLE: tuple[LiteralString, ...] = ("fsync", "synchronous_commit", "full_page_writes")


class PostgresFailed(Exception):
    """A server program failed; the text holds what it said."""


@dataclass(frozen=True)
class Cluster:
    """One data directory and the socket directory its server answers on."""

    programs: Path
    data: Path
    sockets: Path
    identity: Identity
    durable: bool = True
    """Off only for throw-away databases of tests."""

    @property
    def is_created(self) -> bool:
        return (self.data / "PG_VERSION").is_file()

    @property
    def is_ready(self) -> bool:
        ask: list[str | Path] = [
            self.programs / "pg_isready",
            "-q",
            "-h",
            self.sockets,
            "-U",
            USER,
            "-d",
            "postgres",
        ]
        return subprocess.run(ask, capture_output=True, check=False).returncode == 0

    def create(self) -> None:
        """Create the data directory; one that was interrupted half-way is thrown away first."""
        draft = self.data.with_name(f"{self.data.name}.new")
        shutil.rmtree(draft, ignore_errors=True)
        private_directory(draft)
        give(draft, self.identity)
        options = ["--auth=trust", "-E", "UTF8", "--locale=C.UTF-8", "--data-checksums"]
        haste = [] if self.durable else ["--no-sync"]
        self._do("initdb", "-D", draft, "-U", USER, *options, *haste)
        if self.data.exists():
            self.data.rmdir()
        draft.rename(self.data)

    def start(self, *, output: IO[bytes]) -> "subprocess.Popen[bytes]":
        """Start the server; a fast shutdown follows should this process die."""
        settings = (
            "listen_addresses=",
            f'unix_socket_directories="{self.sockets}"',
            "unix_socket_permissions=0700",
            "timezone=UTC",
            "log_timezone=UTC",
            "log_error_verbosity=terse",  # a refused row, or the statement that brought it, holds arguments
            "log_min_error_statement=panic",
            *(f"{name}={'on' if self.durable else 'off'}" for name in DURABLE),
        )
        options = [part for setting in settings for part in ("-c", setting)]
        command: list[str | Path] = [self.programs / "postgres", "-D", self.data, *options]
        return start(
            command, output=output, identity=self.identity, directory=Path("/"), when_orphaned=signal.SIGINT
        )

    def stop_left_over(self) -> bool:
        """Stop a server that outlived its supervisor; whether there was one."""
        status = run([self.programs / "pg_ctl", "status", "-D", self.data], identity=self.identity)
        if status.returncode != 0:
            return False
        self._do("pg_ctl", "stop", "-D", self.data, "-m", "fast", "-w", "-t", "20")
        return True

    def ensure_database(self) -> None:
        """Create the ledger's database where it is missing."""
        with psycopg.connect(
            host=str(self.sockets), user=USER, dbname="postgres", autocommit=True
        ) as connection:
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
            if known is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))

    def _do(self, program: str, *arguments: str | Path) -> None:
        done = run([self.programs / program, *arguments], identity=self.identity)
        if done.returncode != 0:
            raise PostgresFailed(f"{program} failed:\n{done.stdout.strip()}")


def cluster_at(data: Path, sockets: Path, *, way: Sequence[Path], durable: bool = True) -> Cluster:
    """A cluster at `data`, with somebody found who can run it; `way` are our directories that lead there.

    PostgreSQL refuses to run as root. Another user gets the two directories, and may walk through `way`.
    """
    programs = postgres_programs()
    for identity in ordinary_identities(near=CHECKOUT):
        for directory in (data, sockets):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            give(directory, identity)
        if identity.is_other:
            _let_through(way, identity)
        if can_run(identity, programs / "postgres", writes=[data, sockets]):
            return Cluster(programs, data, sockets, identity, durable)
    raise NobodyCanRun(
        f"PostgreSQL does not run as root, and no ordinary user here can reach {programs} and {data.parent}. "
        "Run this as an ordinary user, or set LEDGER_HOME to a directory others can reach, "
        "or set DATABASE_URL to a running server."
    )


def cluster_of(home: Home) -> Cluster:
    """The durable cluster of a home."""
    home.create()
    return cluster_at(home.database, home.database_sockets, way=[home.path, home.sockets])


def give(directory: Path, identity: Identity) -> None:
    """Hand a directory tree to whoever will run the server, where it is not theirs yet."""
    if directory.stat().st_uid == identity.uid:
        return
    os.chown(directory, identity.uid, identity.gid)
    for folder, names, files in os.walk(directory):
        for name in (*names, *files):
            os.chown(Path(folder) / name, identity.uid, identity.gid, follow_symlinks=False)


def unsafe_settings(url: str) -> list[str]:
    """Which of the settings that keep committed rows are off at this database, as a client sees them."""
    with psycopg.connect(url, connect_timeout=5) as connection:
        values = {name: connection.execute(f"SHOW {name}").fetchone() for name in DURABLE}
    return [name for name, row in values.items() if row is None or row[0] == "off"]


def _let_through(way: Sequence[Path], identity: Identity) -> None:
    for directory in way:
        os.chown(directory, -1, identity.gid)
        directory.chmod(0o710)
