"""How what answers a test is started and ended: as a program of its own, or in a thread of this process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from socketserver import TCPServer
from typing import Self

ROOT = Path(__file__).parents[2]


def start_program(module: str, *arguments: str, quiet: bool = False) -> tuple[subprocess.Popen[str], str]:
    """Run a module of ours; the process and its first line, which it says once it serves."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if quiet else None,
        text=True,
    )
    assert process.stdout is not None
    said = process.stdout.readline()
    assert said, f"{module} did not start"
    return process, said


def kill_program(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def end_with_its_starter() -> None:
    """For such a program: it is over when the test that started it is gone."""
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()


class InThread:
    """Serves in a thread of this process while its block runs."""

    def __init__(self, server: TCPServer) -> None:
        self._server = server
        self.port = int(server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
