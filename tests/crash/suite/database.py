"""Each lane's own PostgreSQL server, durable as the product demands, from one template migrated once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from django.db import connections

from ledger.management.local.home import CHECKOUT, Home
from ledger.management.local.postgres import Cluster, cluster_at, give
from tests.crash.suite.compressed import database_options

READY_WITHIN_S = 60.0


@dataclass
class Server:
    """One server; `restarts` counts how often it was started again after it was stopped at once."""

    home: Home
    cluster: Cluster
    process: subprocess.Popen[bytes] | None = None
    restarts: int = 0

    @property
    def _socket(self) -> Path:
        """It is taken away first when the server stops."""
        return self.home.database_sockets / ".s.PGSQL.5432"

    def start(self) -> None:
        """Start, and return once it answers."""
        with (self.home.logs / "postgres.log").open("ab") as log:
            self.process = self.cluster.start(output=log)
        give_up_at = time.monotonic() + READY_WITHIN_S
        while not (self._socket.exists() and self.cluster.is_ready):
            if self.process.poll() is not None or time.monotonic() > give_up_at:
                raise RuntimeError((self.home.logs / "postgres.log").read_text()[-2000:])
            time.sleep(0.01)

    def heal(self) -> bool:
        """Start it again if it is gone, or going; whether it was."""
        if self.process is None or (self.process.poll() is None and self._socket.exists()):
            return False
        self.process.wait(READY_WITHIN_S)
        self.restarts += 1
        self.start()
        return True

    def stop(self) -> None:
        """Stop it at once; whoever needs what is in it has read it."""
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(30)
            self.process = None


def server_at(directory: Path) -> Server:
    """A server in a home of its own."""
    home = Home(directory)
    home.create()
    cluster = cluster_at(home.database, home.database_sockets, way=[home.path, home.sockets])
    return Server(home, cluster)


def make_template(directory: Path) -> Path:
    """A data directory with every migration, to be copied. Returns it, its server stopped in good order."""
    server = server_at(directory)
    server.cluster.create()
    server.start()
    try:
        server.cluster.ensure_database()
        _migrate(server.home)
    finally:
        assert server.process is not None
        server.process.send_signal(signal.SIGINT)
        server.process.wait(30)
    return server.home.database


def _migrate(home: Home) -> None:
    environment = {**os.environ, "DATABASE_URL": home.database_url, "LEDGER_ROLE": "migrate"}
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "--verbosity", "0"],
        cwd=CHECKOUT, env=environment, check=True,
    )  # fmt: skip


def copied(template: Path, directory: Path) -> Server:
    """A server on a copy of the template."""
    server = server_at(directory)
    server.home.database.rmdir()
    shutil.copytree(template, server.home.database)
    give(server.home.database, server.cluster.identity)
    return server


def point_django_at(home: Home) -> None:
    """This process and those it forks open their connections there. None may be open yet."""
    for settings in (connections.settings["default"], connections["default"].settings_dict):
        settings.update(HOST=str(home.database_sockets), PORT="", NAME="ledger", USER="ledger", PASSWORD="")
        options = {name: value for name, value in settings["OPTIONS"].items() if name != "pool"}
        settings["OPTIONS"] = {**options, "options": database_options(options["options"])}
