"""Addresses and names that mean harm: nothing on this machine is dialled, whatever the spelling."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from ledger import http
from ledger.http import AddressRefused, GuardedClient, NoAnswer, NotConnected, check_address


@contextmanager
def watched() -> Iterator[tuple[int, list[str]]]:
    """Listens on every address of this machine; the list fills with whoever connects."""
    seen: list[str] = []
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, peer = server.accept()
                    seen.append(str(peer))
                    connection.close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield server.getsockname()[1], seen
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def ask(url: str, *, nets: tuple[str, ...] = (), **limits: Any) -> http.Response:
    client = GuardedClient(nets, **limits)
    try:
        return client.request("POST", url, headers={}, content=b"{}", allow_http=True)
    finally:
        client.close()


# --- one spelling after the other -----------------------------------------------------------------------

LOOPBACK_SPELLED = [
    *("127.0.0.1", "127.0.0.2", "127.1", "127.0.1", "127.255.255.254", "127.000.000.001"),
    *("0x7f000001", "0X7F000001", "0x7f.0.0.1", "0x7f.1", "0x7f.0x0.0x0.0x1", "0x7F.0.0.0x1"),
    *("017700000001", "0177.0.0.1", "0177.1", "00000177.0.0.1", "0177.0.0x0.1", "2130706433", "2130706434"),
    *("0", "0.0.0.0", "0.0.0.1", "00.0", "0x0", "0x00000000"),  # noqa: S104
    *("localhost", "LOCALHOST", "localhost.", "LocalHost"),
    *("[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[0000:0000:0000:0000:0000:0000:0000:0001]", "[::0001]"),
    *("[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::FFFF:127.0.0.1]", "[0:0:0:0:0:ffff:127.0.0.1]"),
    *("[::ffff:0.0.0.0]", "[::127.0.0.1]", "[::7f00:1]"),
    *("[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]"),
    *("[2002:7f00:0001::1]", "[2001:0:7f00:1::]", "[2001::1]", "[::1%25lo]", "[fe80::1%25lo]", "[fe80::1]"),
    *(
        "①②⑦.⓪.⓪.①",
        "127。0。0。1",
        "127．0．0．1",
        "127｡0｡0｡1",
        "１２７.0.0.1",
        "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
        "ｌｏｃａｌｈｏｓｔ",
    ),
    *("loc\u00adalhost", "local\u200bhost", "127.0.0.1\u200b", "127.0.0.\u0661"),
    *("%31%32%37.0.0.1", "127.0.0.1%00", "127.0.0.1%2eexample", "localhost%2f", "%6cocalhost"),
]
INSIDE = [
    *("10.0.0.1", "10.255.255.255", "012.0.0.1", "0xa000001", "167772161", "10.1"),
    *("172.16.0.1", "172.31.255.254", "192.168.0.1", "192.168.1", "0xc0a80001", "3232235521"),
    *("169.254.169.254", "0xa9fea9fe", "2852039166", "0251.0376.0251.0376", "169.254.43518", "169.254.170.2"),
    *("100.64.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192", "192.0.0.1", "192.0.2.1"),
    *(
        "192.88.99.1",
        "198.18.0.1",
        "198.51.100.7",
        "203.0.113.9",
        "224.0.0.1",
        "239.255.255.250",
        "240.0.0.1",
    ),
    *("255.255.255.255", "0xffffffff", "4294967295"),
    *("[fc00::1]", "[fd00::1]", "[fd00:ec2::254]", "[fd20:ce::254]", "[fec0::1]", "[ff02::1]", "[ff0e::1]"),
    *("[::ffff:10.0.0.1]", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]"),
    *("[2002:a00:1::1]", "[2001:db8::1]", "[2001:10::1]", "[2001:20::1]", "[3fff::1]", "[100::1]"),
    *("[5f00::1]", "[4000::1]", "[::ffff:0:127.0.0.1]", "[::10.0.0.1]"),
]


@pytest.mark.parametrize("host", [*LOOPBACK_SPELLED, *INSIDE])
def test_no_spelling_of_an_inside_address_is_dialled(host: str) -> None:
    with watched() as (port, seen), pytest.raises((AddressRefused, NotConnected)):
        ask(f"http://{host}:{port}/", connect_s=0.5)
    assert seen == []


NO_ADDRESSES = [
    *("", "/", "x", "hooks", "//books.example/", "https:/books.example", "https:books.example", "https://"),
    *("https:///hooks", "https://:443/", "https://?x", "https://#x", "http:///x", "://books.example"),
    *("ftp://books.example/", "file:///etc/passwd", "gopher://127.0.0.1:70/_x", "dict://127.0.0.1:11211/"),
    *("javascript:alert(1)", "data:text/plain,x", "ws://books.example/", "wss://books.example/"),
    *(
        "ldap://books.example/",
        "unix:///run/x.sock",
        "http+unix://%2frun%2fx/",
        "jar:https://books.example!/",
    ),
    *("https://u@books.example/", "https://u:p@books.example/", "https://:p@books.example/"),
    *("https://books.example@127.0.0.1/", "https://a:b@c:d@books.example/", "https://u%40x@books.example/"),
    *("https://books.example:0/", "https://books.example:65536/", "https://books.example:99999/"),
    *("https://books.example:-1/", "https://books.example:x/", "https://books.example:4 43/"),
    *("https://books.example:１/", "https://books.example:443:80/", "https://books.example:22/"),
    *("https://books.example:25/", "https://books.example:5432/", "https://books.example:6379/"),
    *("https://books.example:11211/", "https://books.example:6667/", "https://books.example:2049/"),
    *(
        "https://bo oks.example/",
        "https://books\t.example/",
        "https://books.example\n/",
        "https://books.example/\n",
    ),
    *(
        "https://books.example/\r\nX: y",
        "https://books\0.example/",
        "https://books.example/\0",
        "\nhttps://x/",
    ),
    *(
        "https://[::1/",
        "https://::1/",
        "https://[]/",
        "https://[v1.x]/",
        "https://[::1]x/",
        "https://[1.2.3.4]/",
    ),
    *("https://[::g]/", "https://xn--a/", "https://xn--\u0301/", "https://\u202ebooks.example/"),
    *("https://books\u2044.example/", "https://books.example\uff0f@127.0.0.1/", "https://\ud800.example/"),
]


@pytest.mark.parametrize("url", NO_ADDRESSES, ids=ascii)
def test_what_is_no_address_is_refused_and_nothing_else_happens(
    url: str, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """Not even resolved: neither when it is saved nor when it is sent to."""
    asked: list[str] = []

    def getaddrinfo(host: str, *_: Any, **named: Any) -> list[Any]:
        if not named.get("flags"):
            asked.append(host)
        raise socket.gaierror(-2, "no such name")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    settings.LEDGER_ALLOW_HTTP = True
    for refuses in (ask, check_address):
        with pytest.raises(AddressRefused):
            refuses(url)
    assert asked == []


@pytest.mark.parametrize(
    "host", [host for host in LOOPBACK_SPELLED[:30] if host[0] in "0123456789["] + INSIDE
)
def test_a_literal_is_refused_at_save_without_asking_anybody(host: str, settings: Any) -> None:
    settings.LEDGER_PRIVATE_NETS = ()
    with pytest.raises(AddressRefused):
        check_address(f"https://{host}/", resolve=False)


# --- names ----------------------------------------------------------------------------------------------


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """A name server that gives each look-up of a name its own answer; the last one stays."""
    really = socket.getaddrinfo

    def answers(*rounds: tuple[str, ...]) -> list[str]:
        asked: list[str] = []

        def getaddrinfo(host: str, port: Any, *more: Any, **named: Any) -> list[Any]:
            if not host.endswith(".test"):
                return list(really(host, port, *more, **named))
            if named.get("flags"):
                raise socket.gaierror(-2, "it is a name")
            asked.append(host)
            addresses = rounds[min(len(asked), len(rounds)) - 1]
            return [
                (
                    socket.AF_INET6 if ":" in ip else socket.AF_INET,
                    socket.SOCK_STREAM,
                    6,
                    "",
                    (ip, port, 0, 0) if ":" in ip else (ip, port),
                )
                for ip in addresses
            ]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        return asked

    return answers


BAD_ANSWERS = [
    ("127.0.0.1",),
    ("8.8.8.8", "127.0.0.1"),
    ("127.0.0.1", "8.8.8.8"),
    ("8.8.8.8", "1.1.1.1", "9.9.9.9", "10.0.0.1"),
    ("2606:4700::1111", "::1"),
    ("2606:4700::1111", "fe80::1"),
    ("8.8.8.8", "::ffff:127.0.0.1"),
    ("8.8.8.8", "64:ff9b::7f00:1"),
    ("8.8.8.8", "169.254.169.254"),
    ("8.8.8.8", "fd00:ec2::254"),
    ("8.8.8.8", "0.0.0.0"),  # noqa: S104
    ("8.8.8.8", "fe80::1%lo"),
]


@pytest.mark.parametrize("addresses", BAD_ANSWERS, ids=str)
def test_one_bad_address_among_many_is_enough(
    zone: Callable[..., list[str]], addresses: tuple[str, ...], settings: Any
) -> None:
    settings.LEDGER_ALLOW_HTTP, settings.LEDGER_PRIVATE_NETS = True, ()
    zone(addresses)
    with watched() as (port, seen):
        for refuses in (ask, check_address):
            with pytest.raises(AddressRefused, match="must not be asked"):
                refuses(f"http://books.test:{port}/")
    assert seen == []


def test_a_name_that_is_public_at_save_and_inside_at_the_send_is_refused(
    zone: Callable[..., list[str]], settings: Any
) -> None:
    settings.LEDGER_ALLOW_HTTP, settings.LEDGER_PRIVATE_NETS = True, ()
    asked = zone(("8.8.8.8",), ("127.0.0.1",))
    with watched() as (port, seen):
        check_address(f"http://books.test:{port}/")
        with pytest.raises(AddressRefused):
            ask(f"http://books.test:{port}/")
    assert (seen, asked) == ([], ["books.test"] * 2)


def test_what_was_checked_is_what_is_dialled(zone: Callable[..., list[str]]) -> None:
    """A name that changes between the check and the dialling is not asked for again."""
    asked = zone(("127.0.0.1",), ("127.0.0.2",))
    with watched() as (port, seen), pytest.raises(NoAnswer):
        ask(f"http://books.test:{port}/", nets=("127.0.0.1/32",))
    assert (len(seen), asked) == (1, ["books.test"])
    assert "127.0.0.1" in seen[0]


def test_a_name_nobody_knows_yet_may_be_saved(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    def getaddrinfo(*_: object, **__: object) -> list[Any]:
        raise socket.gaierror(-2, "no such name")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    check_address("https://not-yet.example/")


def test_a_name_server_that_never_answers_costs_no_more_than_the_time_to_connect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = threading.Event()

    def getaddrinfo(*_: object, **__: object) -> list[Any]:
        answers.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    began = time.monotonic()
    with pytest.raises(NotConnected, match="not resolved in time"):
        ask("https://books.example/", connect_s=0.2)
    assert time.monotonic() - began < 30
    answers.set()


def test_there_are_enough_cases() -> None:
    assert len({*LOOPBACK_SPELLED, *INSIDE, *NO_ADDRESSES, *BAD_ANSWERS}) >= 150
