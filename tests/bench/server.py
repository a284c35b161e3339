"""A PostgreSQL for one benchmark alone."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from ledger.management.local.home import Home
from ledger.management.local.postgres import cluster_at
from tests.support.processes import wait_until


@contextmanager
def server(path: Path, *, durable: bool) -> Iterator[psutil.Process]:
    """Its postmaster, with the settings pointed at it. `durable`: as in production, fsync and all."""
    home = Home(path)
    home.create()
    os.environ |= {"LEDGER_HOME": str(path), "DATABASE_URL": home.database_url}
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    cluster = cluster_at(home.database, home.database_sockets, way=[home.path, home.sockets], durable=durable)
    cluster.create()
    with (home.logs / "postgres.log").open("wb") as log:
        process = cluster.start(output=log)
        try:
            wait_until(lambda: cluster.is_ready, within_s=60.0, what="PostgreSQL")
            cluster.ensure_database()
            yield psutil.Process(process.pid)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=30)
