"""Gives the test run a PostgreSQL server of its own, unless DATABASE_URL names one.

Named with `-p` in pyproject.toml: importing it is the one moment before pytest-django reads the settings,
so the addresses are set here and the server follows when the session starts. Workers of pytest-xdist inherit
the addresses and share the server. It runs without fsync: crash tests start durable servers themselves.
"""

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from ledger.management.local.home import Home
from ledger.management.local.postgres import Cluster, cluster_at

STARTS_WITHIN_S = 30.0

_owned: Path | None = None
if "DATABASE_URL" not in os.environ:
    _owned = Path(tempfile.mkdtemp(prefix="ledger-tests-"))
    os.environ["LEDGER_HOME"] = str(_owned)
    os.environ["DATABASE_URL"] = Home(_owned).database_url


def pytest_sessionstart(session: pytest.Session) -> None:
    if _owned is not None and not session.config.getoption("collectonly"):
        _start_server(Home(_owned))


def _start_server(home: Home) -> None:
    home.create()
    cluster = cluster_at(home.database, home.database_sockets, way=[home.path, home.sockets], durable=False)
    cluster.create()
    with (home.logs / "postgres.log").open("wb") as log:
        process = cluster.start(output=log)
    atexit.register(_stop_server, process, home)
    _wait_until_ready(cluster, process, home)
    cluster.ensure_database()


def _wait_until_ready(cluster: Cluster, process: subprocess.Popen[bytes], home: Home) -> None:
    give_up_at = time.monotonic() + STARTS_WITHIN_S
    while not cluster.is_ready:
        if process.poll() is not None or time.monotonic() > give_up_at:
            raise pytest.UsageError((home.logs / "postgres.log").read_text())
        time.sleep(0.02)


def _stop_server(process: subprocess.Popen[bytes], home: Home) -> None:
    process.send_signal(signal.SIGQUIT)
    process.wait(timeout=10)
    shutil.rmtree(home.path, ignore_errors=True)
