"""The whole ledger as real processes on a home of its own: durable, killable, stopped by who started it."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import psutil

from ledger.management.local.home import CHECKOUT, Home
from ledger.management.local.leftovers import children_of

READY_WITHIN_S = 120.0
STOPS_WITHIN_S = 10.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(condition: Callable[[], bool], *, within_s: float, what: str) -> None:
    """Look every 50 ms until `condition` holds; AssertionError names `what` did not come."""
    give_up_at = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < give_up_at, f"not within {within_s:.0f} s: {what}"
        time.sleep(0.05)


def still_running(processes: Iterable[psutil.Process], *, within_s: float) -> list[psutil.Process]:
    """Those that have not ended by then. One that has and is not buried yet is nobody's any more."""
    _, there = psutil.wait_procs(processes, timeout=within_s)
    return [process for process in there if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


def is_stopped(pid: int) -> bool:
    """By SIGSTOP, until it is continued."""
    return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)


class RunningLedger:
    """`manage.py up` in a process of its own, really durable, with no address of this test run."""

    def __init__(self, directory: Path, *, extra_environment: Mapping[str, str] | None = None) -> None:
        self.home = Home(directory)
        self.port = free_port()
        self.output = directory.with_name(f"{directory.name}.out")
        self.extra_environment = dict(extra_environment or {})
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """What a program needs to work beside this ledger."""
        inherited = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        return {
            **inherited,
            "LEDGER_HOME": str(self.home.path),
            "LEDGER_URL": self.address,
            **self.extra_environment,
        }

    def start(self, *options: str) -> None:
        """Start `up` and wait until it says that it is ready."""
        before = self.said().count("is ready")
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                self.command("up", "--port", str(self.port), *options),
                cwd=CHECKOUT,
                env=self.environment,
                stdout=output,
                stderr=output,
            )
        wait_until(
            lambda: self.said().count("is ready") > before or self.has_ended(),
            within_s=READY_WITHIN_S,
            what=f"ready\n{self.said()}",
        )
        assert not self.has_ended(), self.said()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask `up` to stop; its exit code. It has ten seconds."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(STOPS_WITHIN_S)

    def kill_everything(self) -> None:
        """For the end of a test, however it went."""
        if self.process is not None and not self.has_ended():
            self.process.terminate()
            try:
                self.process.wait(STOPS_WITHIN_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
        for left_over in [*self.children(), *self.database_processes()]:
            left_over.kill()

    def has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def said(self) -> str:
        """Everything `up` has printed so far."""
        return self.output.read_text() if self.output.exists() else ""

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run another manage.py command beside it."""
        return subprocess.run(
            self.command(*arguments),
            cwd=CHECKOUT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def child(self, name: str) -> psutil.Process:
        """The first process of the child `name`: web, worker, deliverer, beat, broker or demo."""
        return next(
            process
            for process in self.children()
            if process.environ().get("LEDGER_ROLE") == name and process.pid == os.getpgid(process.pid)
        )

    def children(self) -> list[psutil.Process]:
        """Every process that works for this home, PostgreSQL aside."""
        return children_of(self.home)

    def postmaster(self) -> psutil.Process:
        return psutil.Process(int((self.home.database / "postmaster.pid").read_text().split()[0]))

    def database_processes(self) -> list[psutil.Process]:
        try:
            postmaster = self.postmaster()
            return [postmaster, *postmaster.children(recursive=True)]
        except (FileNotFoundError, psutil.NoSuchProcess):
            return []

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "manage.py", *arguments]
