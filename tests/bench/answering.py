"""What answers every request after 20 ms, at little cost; as a program it prints its port.

Asked for a correlation id, it has the mail that was sent under it.
"""

from __future__ import annotations

import asyncio
import re

from tests.support.serving import end_with_its_starter

ANSWERS_AFTER_S = 0.02
MAIL = (
    b'{"data": [{"id": "msg-%(id)b", "status": "sent", "metadata": {"correlation_id": "%(id)b"}, '
    b'"to": "ada@example.org", "subject": "Invoice 7"}]}'
)
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
_ASKED = re.compile(rb"[?&]correlation_id=([\w-]+)")
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
            asyncio.get_running_loop().call_later(ANSWERS_AFTER_S, self._answer, _answer_to(head))

    def _answer(self, body: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(_ANSWER % (len(body), body))


def _answer_to(head: bytes) -> bytes:
    asked = _ASKED.search(head)
    return MAIL % {b"id": asked[1]} if asked else b"{}"


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    end_with_its_starter()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
