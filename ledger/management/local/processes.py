"""Starting programs: as whom they run, and that they never outlive who started them."""

import contextlib
import ctypes
import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_CLONE_NEWUSER = 0x10000000
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class NobodyCanRun(Exception):
    """This user may not run a program, and no other user here can reach it and its files."""


@dataclass(frozen=True)
class Identity:
    """As whom a program runs: ourselves, another user, or ourselves seen as an ordinary user."""

    name: str
    uid: int
    gid: int
    namespace: bool = False

    @property
    def is_other(self) -> bool:
        return self.uid != os.geteuid()

    def assume(self) -> None:
        """Become this identity, in a forked child before its program starts."""
        if self.namespace:
            _enter_user_namespace()
        elif self.is_other:
            os.setgroups([])
            os.setgid(self.gid)
            os.setuid(self.uid)


def myself() -> Identity:
    return Identity("this user", os.geteuid(), os.getegid())


def ordinary_identities(near: Path) -> Iterator[Identity]:
    """Identities that are not root, best first; `near` is a file whose owner is a good guess.

    Root inside a user namespace comes first: it owns what root owns, so no file changes hands or mode.
    """
    if os.geteuid() != 0:
        yield myself()
        return
    if sys.platform == "linux":
        yield Identity("root seen as an ordinary user", 0, os.getegid(), namespace=True)
    owner = near.stat()
    if owner.st_uid != 0:
        yield Identity(f"user {owner.st_uid}", owner.st_uid, owner.st_gid)
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam(name)
            yield Identity(f"user {name}", user.pw_uid, user.pw_gid)


def can_run(identity: Identity, program: Path, *, writes: Sequence[Path]) -> bool:
    """Whether `identity` can start `program` and write into each directory of `writes`."""

    def become() -> None:
        identity.assume()
        if not all(os.access(directory, os.W_OK | os.X_OK) for directory in writes):
            os._exit(1)

    try:
        answer = subprocess.run(
            [program, "--version"], preexec_fn=become, capture_output=True, check=False, cwd="/"
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return answer.returncode == 0


def start(
    command: Sequence[str | Path],
    *,
    output: IO[bytes] | None,
    identity: Identity | None = None,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    when_orphaned: signal.Signals = signal.SIGTERM,
) -> subprocess.Popen[bytes]:
    """Start a program in a process group of its own; `output` None means our own stdout and stderr.

    Should this process die, the kernel sends `when_orphaned`. Call it from the main thread: the signal
    follows the thread, not the process.
    """
    parent = os.getpid()

    def become() -> None:
        (identity or myself()).assume()
        _die_with(parent, when_orphaned)

    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT if output else None,
        env=dict(environment) if environment is not None else None,
        cwd=directory,
        preexec_fn=become,  # noqa: PLW1509 - callers have one thread
        start_new_session=True,
    )


def run(command: Sequence[str | Path], *, identity: Identity) -> subprocess.CompletedProcess[str]:
    """Run a short program to its end as `identity`; a Ctrl-C in the terminal does not reach it."""
    return subprocess.run(
        command,
        preexec_fn=identity.assume,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd="/",
        start_new_session=True,
    )


def signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Signal what is left of a child's process group, whether or not the child itself still lives."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _die_with(parent: int, number: signal.Signals) -> None:
    if sys.platform != "linux":
        return
    _libc.prctl(_PR_SET_PDEATHSIG, int(number))
    if os.getppid() != parent:
        os._exit(1)


def _enter_user_namespace() -> None:
    uid, gid = os.geteuid(), os.getegid()
    if _libc.unshare(_CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "user namespaces are not allowed here")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"1 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"1 {gid} 1")
