"""A receiver that nobody here wrote: the verifiers of `standardwebhooks` and `svix` in an aiohttp server.

Run as a program: `python -m tests.support.receivers DIR`; it prints its port. POST /standard and /svix answer
204 to what that verifier accepts, 400 to what it refuses. The secret is read anew from DIR/secret each time.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any, Self

import standardwebhooks
import svix.webhooks
from aiohttp import web

from tests.support.serving import kill_program, start_program

VERIFIERS: dict[str, Any] = {"standard": standardwebhooks.Webhook, "svix": svix.webhooks.Webhook}


class ReceiverProcess:
    """Starts it in a process of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __enter__(self) -> Self:
        self.know("whsec_AAAA")
        self._process, said = start_program("tests.support.receivers", str(self.directory))
        self.port = int(said)
        return self

    def __exit__(self, *_: object) -> None:
        kill_program(self._process)

    def know(self, secret: str) -> None:
        (self.directory / "secret").write_text(secret)

    def url(self, verifier: str) -> str:
        return f"http://127.0.0.1:{self.port}/{verifier}"


async def receive(request: web.Request) -> web.Response:
    secret = (request.app[DIRECTORY] / "secret").read_text()
    verifier = VERIFIERS[request.match_info["verifier"]](secret)
    body = await request.read()
    try:
        verifier.verify(body, dict(request.headers))
    except (standardwebhooks.WebhookVerificationError, ValueError) as why:  # a malformed one is a ValueError
        return web.Response(status=400, text=str(why))
    return web.Response(status=204)


DIRECTORY = web.AppKey("directory", Path)


async def serve(directory: Path) -> None:
    app = web.Application()
    app[DIRECTORY] = directory
    app.router.add_post("/{verifier:standard|svix}", receive)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
