"""Everything `up` runs on one machine, child by child."""

import http.client
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from ledger.management.local.broker import answers, broker_command
from ledger.management.local.home import CHECKOUT, Home
from ledger.management.local.leftovers import MARK, end_left_over_children
from ledger.management.local.postgres import Cluster, cluster_of, unsafe_settings
from ledger.management.local.processes import start
from ledger.management.local.programs import broker_program
from ledger.management.local.supervisor import Plan, Supervisor

WEB_WORKERS = 2
WEB_THREADS = 8
MIGRATION_LOCK = 0x1ED6E12
"""Key of the advisory lock under which migrations run: one machine at a time."""


class AddressInUse(Exception):
    """Something else listens where the web server should."""


class UnsafeDatabase(Exception):
    """The database may forget what it committed."""


@dataclass(frozen=True)
class Stack:
    """One `up`: its home, its port, and the supervisor that holds its children."""

    home: Home
    port: int
    supervisor: Supervisor
    host_header: str = "localhost"
    deliverers: int = 1
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def database_url(self) -> str:
        return self.environment.get("DATABASE_URL") or self.home.database_url

    def start(self) -> None:
        """Bring everything up, in the order in which each needs the one before."""
        check_free(self.port)
        if ended := end_left_over_children(self.home):
            self.tell(f"Ended {ended} processes that an earlier run left behind.")
        if not self.environment.get("DATABASE_URL"):
            self._start_postgres(cluster_of(self.home))
        check_durable(self.database_url)
        if not self.environment.get("CELERY_BROKER_URL"):
            self._start_broker()
        self._migrate()
        self.tell("Starting the worker, the scheduler and the web server …")
        self.supervisor.add(self._worker())
        for number in range(1, self.deliverers + 1):
            self.supervisor.add(self._deliverer(number))
        self.supervisor.add(self._beat())
        self.supervisor.add(self._web())

    def start_demo(self) -> None:
        """Add the demo, which fills the ledger and says on our terminal who may sign in."""
        demo = self._python("demo", "manage.py", "demo", "--port", str(self.port), quiet=False)
        self.supervisor.add(demo)

    def tell(self, text: str) -> None:
        self.supervisor.tell(text)

    def _start_postgres(self, cluster: Cluster) -> None:
        if not cluster.is_created:
            self.tell(f"Creating the database in {cluster.data} (once, a few seconds) …")
            cluster.create()
        elif cluster.stop_left_over():
            self.tell("Stopped a database server that an earlier run left behind.")
        self.tell("Starting PostgreSQL …")
        self.supervisor.add(
            Plan(
                name="postgres",
                launch=lambda log: cluster.start(output=log or sys.stdout.buffer),
                log=self._log("postgres"),
                is_ready=lambda: cluster.is_ready,
                stop_signal=signal.SIGINT,
                stop_within_s=2.5,
            )
        )
        cluster.ensure_database()

    def _start_broker(self) -> None:
        command = broker_command(broker_program(), self.home.broker_socket)
        self.supervisor.add(
            Plan(
                name="broker",
                launch=lambda log: start(command, output=log, environment=self._child_environment("broker")),
                log=self._log("broker"),
                is_ready=lambda: answers(self.home.broker_socket),
                ready_within_s=10.0,
                stop_within_s=0.5,
            )
        )

    def _migrate(self) -> None:
        with migration_lock(self.database_url, wait=self.supervisor.look):
            self.tell("Applying migrations …")
            self.supervisor.run_to_end(self._python("migrate", "manage.py", "migrate", "--no-input"))

    def _worker(self) -> Plan:
        return self._celery("worker", "worker", "--concurrency", "2", *self._alone("ledger"))

    def _deliverer(self, number: int) -> Plan:
        """A worker for deliveries alone: slow consumers never keep look-ups waiting."""
        name = "deliverer" if number == 1 else f"deliverer-{number}"
        alone = self._alone(name.replace("deliverer", "deliveries"))
        return self._celery(name, "worker", "--queues", "deliveries", "--pool", "threads",
                            "--concurrency", "1", *alone)  # fmt: skip

    def _alone(self, name: str) -> tuple[str, ...]:
        """Options of a worker that talks to no other worker."""
        return ("--without-gossip", "--without-mingle", "--hostname", f"{name}-{self.port}@%h")

    def _beat(self) -> Plan:
        return self._celery("beat", "beat", "--schedule", str(self.home.beat_schedule), "--pidfile", "")

    def _celery(self, name: str, program: str, *options: str) -> Plan:
        return self._python(
            name, "-m", "celery", "--app", "config.celery", program, "--loglevel", "INFO", *options
        )

    def _web(self) -> Plan:
        return self._python(
            "web", "-m", "granian", "--interface", "wsgi", "--host", "127.0.0.1", "--port", str(self.port),
            "--workers", str(WEB_WORKERS), "--blocking-threads", str(WEB_THREADS), "--http", "1", "--no-ws",
            "--respawn-failed-workers", "--respawn-interval", "0.5", "--workers-kill-timeout", "1",
            "config.wsgi:application", is_ready=True,
        )  # fmt: skip

    def _python(self, name: str, *command: str, quiet: bool = True, is_ready: bool = False) -> Plan:
        """A child that runs this Python in the checkout; `quiet` ones write to a log."""
        environment = self._child_environment(name)
        return Plan(
            name=name,
            launch=lambda log: start(
                [sys.executable, *command], output=log, environment=environment, directory=CHECKOUT
            ),
            log=self._log(name) if quiet else None,
            is_ready=self.is_ready if is_ready else lambda: True,
        )

    def is_ready(self) -> bool:
        """Whether the web server says that it can work."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=3)
        try:
            connection.request("GET", "/readyz", headers={"Host": self.host_header})
            return connection.getresponse().status == http.client.OK
        except OSError:
            return False
        finally:
            connection.close()

    def _child_environment(self, name: str) -> dict[str, str]:
        return {
            **self.environment,
            "LEDGER_HOME": str(self.home.path),
            "LEDGER_URL": self.address,
            "LEDGER_ROLE": name,
            "LEDGER_WEB_THREADS": str(WEB_THREADS),
            "PYTHONUNBUFFERED": "1",
            MARK: str(self.home.path),
        }

    def _log(self, name: str) -> Path:
        return self.home.logs / f"{name}.log"


def check_free(port: int) -> None:
    """AddressInUse where the port is taken on this machine."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise AddressInUse(
                f"Port {port} cannot be used ({error.strerror}): choose another with --port."
            ) from error


def check_durable(url: str) -> None:
    """UnsafeDatabase where a committed row could be lost."""
    if unsafe := unsafe_settings(url):
        raise UnsafeDatabase(
            f"This PostgreSQL runs with {', '.join(unsafe)} off and may forget what it committed. "
            "Turn them on: a ledger that forgets is worse than none."
        )


@contextmanager
def migration_lock(url: str, *, wait: Callable[[], None]) -> Iterator[None]:
    """Hold the advisory lock of migrations in a session of our own; `wait` is called while another has it."""
    with psycopg.connect(url, autocommit=True) as connection:
        while connection.execute("SELECT pg_try_advisory_lock(%s)", [MIGRATION_LOCK]).fetchone() != (True,):
            wait()
        yield
