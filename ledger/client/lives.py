"""What outlives a process: one file for each life of one, locked while it lives.

`<state_dir>/<worker id>.life` is made before the first leave. Its lock ends with the process, however that
ends, so a file whose lock can be had belonged to a dead one: the reports in it still have to be delivered,
and what that worker was sending has to be declared UNKNOWN. The directory is for one agent, on a local disk.
"""

import contextlib
import fcntl
import json
import os
import re
import secrets
import socket
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ledger.client.records import Kept, Report, done_line, keep_line, next_in_turn, read_spool

SUFFIX = ".life"
ASIDE = "aside.jsonl"
EMPTIED_ABOVE = 65_536  # bytes
UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


class Life:
    """One life: its worker id, and its reports on the way. Threads may share it."""

    def __init__(self, path: Path, handle: int) -> None:
        self.worker_id = path.name.removesuffix(SUFFIX)
        self._path = path
        self._handle = handle
        self._lock = threading.Lock()
        spooled = read_spool(path.read_bytes())
        self._left = {kept.number: kept for kept in spooled.waiting}
        self._under_way: dict[int, Kept] = {}
        self._last = max(self._left, default=0)
        self._corrupt = spooled.corrupt

    @property
    def waiting(self) -> int:
        """How many reports are not delivered yet."""
        with self._lock:
            return len(self._left) + len(self._under_way)

    def has_left(self, kept: Kept) -> bool:
        with self._lock:
            return kept.number in self._left

    def keep(self, report: Report) -> Kept:
        """Write a report down, durably, before it is posted. Raises OSError where the disk will not."""
        with self._lock:
            self._last += 1
            kept = Kept(self._last, report)
            _append(self._handle, keep_line(kept))
            self._left[kept.number] = kept
        return kept

    def claim(self, kept: Kept) -> None:
        """Whoever kept it posts it now."""
        with self._lock:
            if kept.number in self._left:
                self._begin(kept)

    def take(self, passing_over: Iterable[str] = ()) -> Kept | None:
        """The next report left to post, about none of these; nobody else is given it meanwhile."""
        with self._lock:
            busy = [kept.report.about for kept in self._under_way.values()]
            return self._begin(next_in_turn(self._left.values(), [*busy, *passing_over]))

    def take_before(self, kept: Kept) -> Kept | None:
        """The next one left that is about the same and must come before `kept`."""
        with self._lock:
            about = kept.report.about
            earlier = (one for one in self._left.values() if one.number < kept.number)
            return self._begin(next_in_turn(one for one in earlier if one.report.about == about))

    def leave_if_under_way(self, kept: Kept) -> None:
        """It was neither taken nor refused: somebody posts it later."""
        with self._lock:
            if self._under_way.pop(kept.number, None) is not None:
                self._left[kept.number] = kept

    def cross_out(self, kept: Kept) -> None:
        """The ledger has it. Losing this line is harmless: the report would be posted once more."""
        with self._lock:
            self._under_way.pop(kept.number, None)
            with contextlib.suppress(OSError):
                self._strike(kept.number)

    def put_aside(self, kept: Kept, why: str) -> bool:
        """The ledger will never take it: keep it for a person, out of the way of the others. False where the
        disk will not: then it stays where it is."""
        said = {"path": kept.report.path, "body": kept.report.body}
        try:
            _write_aside(self._path.with_name(ASIDE), {"why": why, "worker_id": self.worker_id, **said})
        except OSError:
            return False
        self.cross_out(kept)
        return True

    def bury(self) -> None:
        """This life is dealt with: forget it, unless something in it is still to be kept."""
        if not self.waiting:
            with contextlib.suppress(OSError):
                self._put_corrupt_aside()
                self._path.unlink(missing_ok=True)

    def release(self) -> None:
        """Let go of the lock, so that others may take it for dead."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def _put_corrupt_aside(self) -> None:
        """Keep unreadable lines for a person."""
        for line in self._corrupt:
            said = {"why": "unreadable", "worker_id": self.worker_id, "line": line.decode(errors="replace")}
            _write_aside(self._path.with_name(ASIDE), said)

    def _begin(self, kept: Kept | None) -> Kept | None:
        if kept is not None:
            self._under_way[kept.number] = self._left.pop(kept.number)
        return kept

    def _strike(self, number: int) -> None:
        os.write(self._handle, done_line(number))
        if not (self._left or self._under_way) and os.fstat(self._handle).st_size > EMPTIED_ABOVE:
            os.ftruncate(self._handle, 0)


class Lives:
    """The lives that share a directory: this process's own, and the dead ones found there."""

    def __init__(self, directory: Path, name: str = "") -> None:
        self.directory = directory
        self.caught_up = False
        self._name = UNSAFE.sub("-", name or socket.gethostname())[:60]
        self._lock = threading.Lock()
        self._mine: Life | None = None
        _ALL.add(self)

    def mine(self) -> Life:
        """This process's life, its file made and locked when it is first asked for. Raises OSError."""
        with self._lock:
            if self._mine is None:
                self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._mine = self._begin()
            return self._mine

    def dead(self) -> Iterator[Life]:
        """Each life whose process is no more, locked by us until it is released."""
        for path in sorted(self.directory.glob(f"*{SUFFIX}")):
            life = None
            with contextlib.suppress(OSError):  # one file that cannot be opened hides no other
                life = _opened(path, os.O_RDWR | os.O_APPEND)
            if life is not None:
                yield life

    def forget_after_fork(self) -> None:
        """In a forked child: the parent's life is the parent's, and its lock must end with the parent."""
        mine, self._mine, self._lock, self.caught_up = self._mine, None, threading.Lock(), False
        if mine is not None:
            mine.release()

    def _begin(self) -> Life:
        while True:
            worker_id = f"{self._name}-{os.getpid()}-{secrets.token_hex(6)}"
            path = self.directory / f"{worker_id}{SUFFIX}"
            life = _opened(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL)
            if life is not None:  # None: somebody took the new file for a dead one before it was locked
                _sync_directory(self.directory)
                return life


def lives_in(directory: str, name: str = "") -> Lives:
    """The lives of this directory: one object for each process, whoever asks."""
    path = Path(directory).expanduser().resolve()
    with _REGISTRY_LOCK:
        return _REGISTRY.setdefault((path, name), Lives(path, name))


def _opened(path: Path, flags: int) -> Life | None:
    """The life of this file, locked; None where somebody else has it or it is gone."""
    try:
        handle = os.open(path, flags, 0o600)
    except FileNotFoundError:
        return None
    life = None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(handle).st_nlink:
            life = Life(path, handle)
    except (BlockingIOError, FileNotFoundError):
        pass
    finally:
        if life is None:
            os.close(handle)
    return life


def _append(handle: int, line: bytes) -> None:
    written = os.write(handle, line)
    if written != len(line):
        raise OSError(f"only {written} of {len(line)} bytes were written")
    os.fsync(handle)


def _write_aside(path: Path, said: Mapping[str, object]) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        _append(handle, json.dumps(said).encode() + b"\n")
    finally:
        os.close(handle)


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_ALL: "weakref.WeakSet[Lives]" = weakref.WeakSet()
_REGISTRY: dict[tuple[Path, str], Lives] = {}
_REGISTRY_LOCK = threading.Lock()


def _after_fork() -> None:
    global _REGISTRY_LOCK  # noqa: PLW0603  (another thread may have held it)
    _REGISTRY_LOCK = threading.Lock()
    for lives in list(_ALL):
        lives.forget_after_fork()


os.register_at_fork(after_in_child=_after_fork)
