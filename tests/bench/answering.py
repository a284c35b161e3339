"""What answers every request after 20 ms, at little cost; as a program it prints its port."""

from __future__ import annotations

import asyncio
import re

from tests.support.serving import end_with_its_starter

ANSWERS_AFTER_S = 0.02
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class Answering(asyncio.Protocol):
    """One kept connection; one request after the other."""

    def __init__(self) -> None:
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, found, body = self._read.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if found and len(body) >= (int(length[1]) if length else 0):
            self._read = b""
            asyncio.get_running_loop().call_later(ANSWERS_AFTER_S, self._answer)

    def _answer(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(ANSWER)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    end_with_its_starter()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
