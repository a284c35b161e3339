"""Answers that mean harm: none holds more of us than it may, and none sends us elsewhere."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from ledger import http
from ledger.http import GuardedClient, NoAnswer
from tests.ledger.test_http_hostile import ask, watched

LOOPBACK = ("127.0.0.0/8", "::1/128")


@contextmanager
def answering(speak: Callable[[socket.socket], None], *, takes_bytes: int = 0) -> Iterator[str]:
    """Reads one request, and then does to the connection whatever the test says. `takes_bytes`: so much waits
    for it at most, where it is not 0."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        if takes_bytes:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, takes_bytes)

        def serve() -> None:
            with suppress(OSError):
                connection, _ = server.accept()
                with connection, suppress(OSError):
                    connection.recv(65_536)
                    speak(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        server.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def test_an_endless_answer_is_cut() -> None:
    def endless(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b"x" * 65_536)

    with answering(endless) as url:
        said = ask(url, nets=LOOPBACK)
    assert (said.status, len(said.body), said.cut) == (200, http.MOST_BYTES, True)


def test_endless_chunks_are_cut() -> None:
    def chunks(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            connection.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")

    with answering(chunks) as url:
        assert ask(url, nets=LOOPBACK).cut


def test_a_gzip_bomb_is_never_unpacked() -> None:
    packed = gzip.compress(bytes(30_000_000))

    def bomb(connection: socket.socket) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
        connection.sendall(head.encode() + packed)

    with answering(bomb) as url:
        said = ask(url, nets=LOOPBACK)
    assert said.body == packed[: http.MOST_BYTES]


FLOODS = {
    "endless status line": lambda: b"HTTP/1.1 200 " + b"O" * 65_536,
    "endless header": lambda: b"HTTP/1.1 200 OK\r\na: " + b"x" * 65_536,
    "endless headers": lambda: b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 10_000,
    "endless interim answers": lambda: b"HTTP/1.1 103 Early Hints\r\n\r\n" * 2_000,
}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
def test_a_flood_before_the_body_ends(flood: Callable[[], bytes]) -> None:
    def pour(connection: socket.socket) -> None:
        while True:
            connection.sendall(flood())

    began = time.monotonic()
    with answering(pour) as url, pytest.raises(NoAnswer):
        ask(url, nets=LOOPBACK, total_s=2)
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\na\0b: c\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        b"",
    ],
    ids=ascii,
)
def test_an_answer_that_lies_is_none(said: bytes) -> None:
    with answering(lambda connection: connection.sendall(said)) as url, pytest.raises(NoAnswer):
        ask(url, nets=LOOPBACK)


@pytest.mark.parametrize("drips", ["headers", "body"])
def test_a_slow_drip_ends_when_the_time_does(drips: str) -> None:
    stop = threading.Event()

    def drip(connection: socket.socket) -> None:
        if drips == "body":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n")
        while not stop.wait(0.02):
            connection.sendall(b"H")

    began = time.monotonic()
    with answering(drip) as url, pytest.raises(NoAnswer):
        ask(url, nets=LOOPBACK, total_s=0.4)
    stop.set()
    assert time.monotonic() - began < 20


def test_the_fragment_is_not_sent() -> None:
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                asked.append(connection.recv(65_536))
                connection.sendall(b"HTTP/1.1 204 x\r\n\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        ask(f"http://127.0.0.1:{server.getsockname()[1]}/a?b#secret", nets=LOOPBACK)
        thread.join(5)
    assert b"secret" not in asked[0]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_the_inside_is_only_an_answer(status: int) -> None:
    with watched() as (port, seen):
        moved = f"HTTP/1.1 {status} x\r\nLocation: http://127.0.0.2:{port}/\r\nContent-Length: 0\r\n\r\n"
        with answering(lambda connection: connection.sendall(moved.encode())) as url:
            assert ask(url, nets=("127.0.0.1/32",)).status == status
    assert seen == []


def test_a_body_that_is_read_slowly_ends_when_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part of it is taken in time; all of them together are not."""
    dial = socket.create_connection

    def with_little_under_way(*address: Any, **options: Any) -> socket.socket:
        line = dial(*address, **options)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8_192)
        return line

    def sip(connection: socket.socket) -> None:
        for _ in range(500):
            time.sleep(0.02)
            if not connection.recv(4_096):
                return

    monkeypatch.setattr(socket, "create_connection", with_little_under_way)
    client = GuardedClient(LOOPBACK, total_s=0.5)
    with answering(sip, takes_bytes=8_192) as url:
        began = time.monotonic()
        with pytest.raises(NoAnswer):
            client.request("POST", url, headers={}, content=bytes(8_000_000), allow_http=True)
        assert time.monotonic() - began < 5
        client.close()
