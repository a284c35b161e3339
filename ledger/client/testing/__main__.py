"""`python -m ledger.client.testing BOUNDARY PROGRAM [argument …]`: run a program that dies at this boundary.

Only this process is prepared so; the client itself knows no such places.
"""

import os
import runpy
import signal
import sys
from pathlib import Path
from typing import Any

from ledger.client.io import AsyncIo, BlockingIo
from ledger.client.testing.boundaries import PLACES, Boundary, Place


def main() -> None:
    boundary, program, *arguments = sys.argv[1:]
    for kind in (BlockingIo, AsyncIo):
        die_at(PLACES[Boundary(boundary)], kind)
    sys.argv = [program, *arguments]
    sys.path[0] = str(Path(program).resolve().parent)
    runpy.run_path(program, run_name="__main__")


def die_at(place: Place, kind: Any) -> None:
    """From now on, the first such request through this kind of `Io` is the process's last."""
    send = kind.send

    async def send_or_die(self: Any, request: Any) -> Any:
        here = request.path.endswith(place.call)
        if here and not place.after:
            die()
        answer = await send(self, request)
        if here:
            die()
        return answer

    kind.send = send_or_die


def die() -> None:
    """As `kill -9`: no handler, no clean-up, no word."""
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
