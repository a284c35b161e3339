"""The guarded client: what it refuses to dial, what it never follows, and when it stops reading."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore
import pytest

from ledger import http
from ledger.http import AddressRefused, GuardedClient, NoAnswer, NotConnected, Response, allowed_address

LOOPBACK = ("127.0.0.0/8",)

PUBLIC = [
    *("8.8.8.8", "1.1.1.1", "93.184.216.34", "100.63.255.255", "100.128.0.1", "172.32.0.1", "192.0.1.1"),
    *("223.255.255.255", "2001:4860:4860::8888", "2606:4700::1111", "2a00:1450::1", "2001:200::1", "3ffe::1"),
]
REFUSED = [
    *("0.0.0.1", "0.1.2.3", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.0.9", "169.254.169.254"),
    *("172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.31.196.1", "192.52.193.1"),
    *("192.88.99.1", "192.168.1.1", "192.175.48.1", "198.18.0.1", "198.19.255.255", "198.51.100.1"),
    *("203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255"),
    *("100.100.100.200", "168.63.129.16", "192.0.0.192"),
    *("::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::7f00:1", "64:ff9b:1::1"),
    *("100::1", "2001::1", "2001:1ff::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "3fff:fff::1"),
    *("4000::1", "5f00::1", "fc00::1", "fd00::1", "fd00:ec2::254", "fd20:ce::254", "fe80::1", "fec0::1"),
    *("fe80::1%eth0", "2606:4700::1%eth0", "ff02::1"),
]
NEVER = ["169.254.169.254", "169.254.170.2", "fe80::1", "::ffff:10.0.0.1", "fd00:ec2::254", "224.0.0.1", "::"]


@pytest.mark.parametrize("ip", PUBLIC)
def test_a_public_address_may_be_dialled(ip: str) -> None:
    assert allowed_address(ip)


@pytest.mark.parametrize("ip", REFUSED)
def test_any_other_address_may_not(ip: str) -> None:
    assert not allowed_address(ip)


@pytest.mark.parametrize("ip", ["10.1.2.3", "127.0.0.1", "fd12::1", "::1"])
def test_a_private_net_is_opened_by_name_only(ip: str) -> None:
    nets = ("10.1.0.0/16", "127.0.0.0/8", "fd12::/16", "::1/128")
    assert allowed_address(ip, private_nets=nets)
    assert not allowed_address("10.2.0.1", private_nets=nets)


@pytest.mark.parametrize("ip", NEVER)
def test_metadata_and_link_addresses_are_never_opened(ip: str) -> None:
    assert not allowed_address(ip, private_nets=("0.0.0.0/0", "::/0"))


def whole_request(connection: socket.socket) -> bytes:
    """One request with its body; empty when the other side is gone."""
    asked = b""
    while not asked.endswith(b"\r\n\r\n" if b"Content-Length" not in asked else b"{ }"):
        part = connection.recv(65_536)
        if not part:
            break
        asked += part
    return asked


@contextmanager
def listener(*answers: bytes, tls: ssl.SSLContext | None = None) -> Iterator[tuple[int, list[bytes]]]:
    """A raw server on loopback: per connection, one of the answers to each request, then it hangs up.

    Yields its port and what it got; an empty first entry stands for a connection that said nothing.
    """
    got: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            left = list(answers)
            while left:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    while left and (asked := whole_request(connection)):
                        got.append(asked)
                        connection.sendall(left.pop(0))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1], got
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def answer(body: bytes = b"{}", status: str = "200 OK", length: int | None = None) -> bytes:
    said = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Length: {said}\r\n\r\n".encode() + body


def ask(url: str, *, nets: tuple[str, ...] = LOOPBACK, allow_http: bool = True, **limits: Any) -> Response:
    client = GuardedClient(nets, **limits)
    try:
        return client.request("GET", url, headers={}, content=None, allow_http=allow_http)
    finally:
        client.close()


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Let a name have these addresses; returns the list of names asked for."""

    really = socket.getaddrinfo

    def have(*addresses: str) -> list[str]:
        asked: list[str] = []

        def getaddrinfo(host: str, port: int, *more: Any, **named: Any) -> list[Any]:
            if not host.endswith(".test"):
                return list(really(host, port, *more, **named))
            asked.append(host)
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in addresses]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        return asked

    return have


def test_the_checked_address_is_dialled_and_the_name_kept(names: Callable[..., list[str]]) -> None:
    asked = names("127.0.0.1")
    with listener(answer(b'{"a": 1}')) as (port, got):
        said = ask(f"http://provider.test:{port}/x?y=1")
    assert (said.status, said.body, said.cut) == (200, b'{"a": 1}', False)
    assert b"GET /x?y=1 HTTP/1.1\r\n" in got[0]
    assert f"Host: provider.test:{port}\r\n".encode() in got[0]
    assert asked == ["provider.test"]


@pytest.mark.parametrize(
    "addresses", [("127.0.0.1",), ("8.8.8.8", "127.0.0.1"), ("127.0.0.1", "8.8.8.8")], ids=str
)
def test_one_refused_address_of_a_name_is_enough(
    names: Callable[..., list[str]], addresses: tuple[str, ...]
) -> None:
    names(*addresses)
    with listener(answer()) as (port, got), pytest.raises(AddressRefused, match="LEDGER_PRIVATE_NETS"):
        ask(f"http://provider.test:{port}/", nets=())
    assert got == []


LOCAL_IN_DISGUISE = [
    "127.1",
    "0x7f.0.0.1",
    "2130706433",
    "0177.0.0.1",
    "localhost",
    "[::1]",
    "[::ffff:127.0.0.1]",
]


@pytest.mark.parametrize("host", LOCAL_IN_DISGUISE)
def test_a_listener_on_this_machine_sees_nothing(host: str) -> None:
    with listener(answer()) as (port, got), pytest.raises((AddressRefused, NotConnected)):
        ask(f"http://{host}:{port}/", nets=())
    assert got == []


BAD_URLS = [
    "ftp://x/",
    "//x/",
    "x",
    "",
    "http:///x",
    "http://u:p@127.0.0.1/",
    "http://127.0.0.1:99999/",
    "http://a\nb/",
]


@pytest.mark.parametrize("url", BAD_URLS)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused):
        ask(url)


def test_only_https_unless_it_was_allowed() -> None:
    with listener(answer()) as (port, got), pytest.raises(AddressRefused, match="only https"):
        ask(f"http://127.0.0.1:{port}/", allow_http=False)
    assert got == []


@pytest.mark.parametrize(
    "headers", [{"Host": "x"}, {"content-length": "5"}, {"X": "a\r\nB: c"}, {"X\n": "a"}], ids=str
)
def test_a_header_cannot_change_what_is_asked(headers: dict[str, str]) -> None:
    client = GuardedClient(LOOPBACK)
    with listener(answer()) as (port, got), pytest.raises(AddressRefused):
        client.request("GET", f"http://127.0.0.1:{port}/", headers=headers, content=None, allow_http=True)
    client.close()
    assert got == []


def test_a_redirect_is_an_answer_like_any_other() -> None:
    with listener(answer(), answer()) as (target, elsewhere):
        moved = f"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{target}/\r\nContent-Length: 0\r\n\r\n"
        with listener(moved.encode()) as (port, _):
            assert ask(f"http://127.0.0.1:{port}/").status == 302
    assert elsewhere == []


def test_proxies_of_the_environment_and_cookies_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    cookie = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 2\r\n\r\n{}"
    client = GuardedClient(LOOPBACK)
    with listener(cookie, answer()) as (port, got):
        for _ in range(2):
            client.request("GET", f"http://127.0.0.1:{port}/", headers={}, content=None, allow_http=True)
    client.close()
    assert len(got) == 2
    assert b"ookie" not in got[1]


def test_connections_are_used_again_and_resolved_once(names: Callable[..., list[str]]) -> None:
    asked = names("127.0.0.1")
    client = GuardedClient(LOOPBACK)
    with listener(answer(), answer()) as (port, got):
        for _ in range(2):
            client.request("GET", f"http://p.test:{port}/", headers={}, content=None, allow_http=True)
    client.close()
    assert (len(got), asked) == (2, ["p.test"])


def test_a_connection_that_was_closed_meanwhile_is_not_used_again() -> None:
    client, closed = GuardedClient(LOOPBACK), threading.Semaphore(0)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for _ in range(2):
                connection, _address = server.accept()
                with connection:
                    whole_request(connection)
                    connection.sendall(answer())
                closed.release()

        threading.Thread(target=serve, daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        for _ in range(2):
            said = client.request("GET", url, headers={}, content=None, allow_http=True)
            assert said.status == 200
            assert closed.acquire(timeout=10)
    client.close()


def test_idle_connections_are_few_and_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MOST_IDLE", 1)
    client = GuardedClient(LOOPBACK)
    with listener(answer(), answer()) as (first, asked), listener(answer(), answer()) as (second, _):
        for port in (first, second):
            url = f"http://127.0.0.1:{port}/"
            client.request("GET", url, headers={}, content=None, allow_http=True)
        (kept,) = client._idle._by_age
        assert kept.can_handle_request(httpcore.Origin(b"http", b"127.0.0.1", second))
        client.request("GET", f"http://127.0.0.1:{first}/", headers={}, content=None, allow_http=True)
    client.close()
    assert len(asked) == 2


@pytest.mark.parametrize(("size", "cut"), [(65_536, False), (65_537, True), (500_000, True)])
def test_reading_stops_at_64_kb(size: int, cut: bool) -> None:
    with listener(answer(b"x" * size)) as (port, _):
        said = ask(f"http://127.0.0.1:{port}/")
    assert (len(said.body), said.cut) == (65_536, cut)


BROKEN = {
    "nothing": b"",
    "not http": b"SSH-2.0-x\r\n\r\n",
    "cut short": answer(b"{}", length=10),
    "bad chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "endless headers": b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 50_000,
}


@pytest.mark.parametrize("said", BROKEN.values(), ids=BROKEN)
def test_half_an_answer_is_none(said: bytes) -> None:
    with listener(said) as (port, _), pytest.raises(NoAnswer):
        ask(f"http://127.0.0.1:{port}/")


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(NotConnected):
        ask(f"http://127.0.0.1:{port}/")


def test_a_name_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(*_: object, **__: object) -> list[Any]:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(NotConnected, match="cannot be resolved"):
        ask("https://nowhere.test/")


def test_a_dripping_answer_ends_when_the_time_is_up() -> None:
    """Each byte comes in time; all of them together do not."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                try:
                    while not stop.wait(0.05):
                        connection.sendall(b"H")
                except OSError:
                    return

        thread = threading.Thread(target=drip)
        thread.start()
        began = time.monotonic()
        with pytest.raises(NoAnswer):
            ask(f"http://127.0.0.1:{server.getsockname()[1]}/", total_s=0.4)
        stop.set()
        thread.join()
    assert time.monotonic() - began < 5


def test_a_refusal_leaves_the_client_usable(names: Callable[..., list[str]]) -> None:
    client = GuardedClient(LOOPBACK)
    names("10.0.0.1")
    for _ in range(60):  # more than the connections it may hold
        with pytest.raises(AddressRefused):
            client.request("GET", "https://p.test/", headers={}, content=None, allow_http=False)
    names("127.0.0.1")
    with listener(answer()) as (port, _):
        said = client.request("GET", f"http://p.test:{port}/", headers={}, content=None, allow_http=True)
    client.close()
    assert said.status == 200


def test_tls_asks_for_the_name_not_the_address(
    names: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    names("127.0.0.1")
    asked: list[str | None] = []

    class Context(ssl.SSLContext):
        def wrap_socket(self, *_: Any, server_hostname: Any = None, **__: Any) -> ssl.SSLSocket:
            asked.append(server_hostname)
            raise ssl.SSLCertVerificationError("refused by the test")

    with listener(answer()) as (port, got), pytest.raises(NotConnected):
        ask(f"https://provider.test:{port}/", ssl_context=Context(ssl.PROTOCOL_TLS_CLIENT))
    assert asked == ["provider.test"]
    assert got == []


def test_certificates_are_checked() -> None:
    context = GuardedClient()._ssl_context
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_the_settings_decide(settings: Any) -> None:
    with listener(answer(), answer()) as (port, got):
        url = f"http://127.0.0.1:{port}/"
        settings.LEDGER_ALLOW_HTTP, settings.LEDGER_PRIVATE_NETS = True, ()
        with pytest.raises(AddressRefused, match="must not be asked"):
            http.request("GET", url)
        settings.LEDGER_PRIVATE_NETS = LOOPBACK
        assert http.request("GET", url).status == 200
        settings.LEDGER_ALLOW_HTTP = False
        with pytest.raises(AddressRefused, match="only https"):
            http.request("GET", url)
        http.close_connections()
    assert len(got) == 1


def test_a_body_is_sent_as_it_is() -> None:
    client = GuardedClient(LOOPBACK)
    with listener(answer()) as (port, got):
        client.request(
            "POST", f"http://127.0.0.1:{port}/", headers={"A": "b"}, content=b"{ }", allow_http=True
        )
    client.close()
    assert got[0].endswith(b"\r\n\r\n{ }")
    assert b"Content-Length: 3\r\n" in got[0]
    assert b"\r\nA: b\r\n" in got[0]
