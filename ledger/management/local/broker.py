"""The broker: a Valkey or Redis server on a Unix socket that only this user reaches.

It keeps nothing on disk: messages are hints, and the sweeps find the work without them.
"""

import socket
from pathlib import Path


def broker_command(program: Path, address: Path) -> list[str | Path]:
    settings: dict[str, str | Path] = {
        "port": "0",
        "unixsocket": address,
        "unixsocketperm": "600",
        "save": "",
        "appendonly": "no",
        "daemonize": "no",
        "dir": address.parent,
        "set-proc-title": "no",  # it would overwrite the environment that marks our children
    }
    return [program, *(part for name, value in settings.items() for part in (f"--{name}", value))]


def answers(address: Path) -> bool:
    """Whether a broker answers PING at this socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(1.0)
        try:
            connection.connect(str(address))
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False
