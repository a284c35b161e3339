"""What an earlier `up` left behind when it was killed: its lock, and children that outlived it."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import psutil

from ledger.management.local.home import Home

MARK = "LEDGER_SUPERVISED_BY"
"""An environment variable every child carries: the home it works for."""
ENDS_WITHIN_S = 3.0


class AlreadyRunning(Exception):
    """Another `up` works on the same LEDGER_HOME."""


@contextlib.contextmanager
def only_one(home: Home) -> Iterator[None]:
    """Hold the home for one `up`; AlreadyRunning names the process that has it."""
    with home.lock.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(_holder(home)) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def end_left_over_children(home: Home) -> int:
    """End children of a supervisor that was killed; how many there were. Call it under `only_one`."""
    orphans = children_of(home)
    for process in orphans:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    _, stubborn = psutil.wait_procs(orphans, timeout=ENDS_WITHIN_S)
    for process in stubborn:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(stubborn, timeout=ENDS_WITHIN_S)
    return len(orphans)


def children_of(home: Home) -> list[psutil.Process]:
    """Every process that works for a home, PostgreSQL aside."""
    return [process for process in psutil.process_iter() if _works_for(process, home.path)]


def _works_for(process: psutil.Process, path: Path) -> bool:
    try:
        return bool(process.pid != os.getpid() and process.environ().get(MARK) == str(path))
    except (psutil.Error, OSError):
        return False


def _holder(home: Home) -> str:
    who = home.lock.read_text().strip() or "unknown"
    return (
        f"The ledger already runs on {home.path} (process {who}). Use that one, stop it with Ctrl-C or "
        f"`kill {who}`, or set LEDGER_HOME to another directory."
    )
