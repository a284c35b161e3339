"""The one guarded client for everything this program sends out.

Addresses come from configuration that people edit, so a name is resolved once, every address it has must be
allowed, and exactly the checked address is dialled. No redirects, no proxies from the environment, no
cookies, nothing decompressed, an answer of at most 64 kB, 20 s for everything together.
"""

import atexit
import ipaddress
import math
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpcore
import httpx
from django.conf import settings

CONNECT_S = 5.0
TOTAL_S = 20.0
MOST_BYTES = 65_536
IDLE_S = 30.0
OUR_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
SocketOptions = Iterable[
    tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
]


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(text) for text in texts)


SPECIAL_IPV4 = _networks(
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
    *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24"),
    *("192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
    *("224.0.0.0/4", "240.0.0.0/4"),
)
GLOBAL_IPV6 = _networks("2000::/3")
SPECIAL_IPV6 = _networks("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")

# What a cloud machine is told about itself, and what belongs to one link or to nobody: never, however set.
NEVER = _networks(
    *("0.0.0.0/8", "169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32"),
    *("224.0.0.0/4", "255.255.255.255/32"),
    *("::/128", "fe80::/10", "fec0::/10", "ff00::/8", "::ffff:0:0/96", "fd00:ec2::/32", "fd20:ce::/32"),
)


class OutgoingError(Exception):
    """Nothing usable came back; the subclasses say whether anything may have been sent."""


class AddressRefused(OutgoingError):
    """This must not be asked, whoever configured it. Nothing was sent."""


class NotConnected(OutgoingError):
    """Nobody could be reached. Nothing was sent."""


class OutOfTime(NotConnected):
    """The caller's own time was over before anybody was asked, which says nothing of who would have been."""


class NoAnswer(OutgoingError):
    """It was sent, or part of it, and no whole answer came: a timeout, a cut connection, nonsense."""


@dataclass(frozen=True)
class Response:
    """A whole answer; `cut` when it was longer than 64 kB and only its beginning is here."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool


def allowed_address(ip: Address | str, *, private_nets: Iterable[Network | str] = ()) -> bool:
    """May this address be dialled? Public ones may; others only where an admin named their net.

    Not `ipaddress.is_global`: that lets NAT64, 6to4, `::127.0.0.1`, site-local and multicast through.
    """
    address = ipaddress.ip_address(ip)
    if getattr(address, "scope_id", None) or _in(address, NEVER):
        return False
    if _in(address, map(ipaddress.ip_network, private_nets)):
        return True
    if address.version == 4:
        return not _in(address, SPECIAL_IPV4)
    return _in(address, GLOBAL_IPV6) and not _in(address, SPECIAL_IPV6)


def request(
    method: str, url: str, *, headers: Mapping[str, str] | None = None, content: bytes | None = None
) -> Response:
    """Send one request under the settings in force. Raises OutgoingError where there is no whole answer."""
    nets = tuple(getattr(settings, "LEDGER_PRIVATE_NETS", ()))
    return _client(nets, os.getpid()).request(
        method,
        url,
        headers=headers or {},
        content=content,
        allow_http=bool(getattr(settings, "LEDGER_ALLOW_HTTP", False)),
    )


class GuardedClient:
    """Reused connections, each to an address that was checked when it was dialled."""

    def __init__(
        self,
        private_nets: Iterable[Network | str] = (),
        *,
        connect_s: float = CONNECT_S,
        total_s: float = TOTAL_S,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._total_s = total_s
        self._pool = httpcore.ConnectionPool(
            ssl_context=ssl_context or httpx.create_ssl_context(),
            max_connections=50,
            max_keepalive_connections=20,
            keepalive_expiry=IDLE_S,
            network_backend=_CheckedDialling(tuple(map(ipaddress.ip_network, private_nets)), connect_s),
        )

    def request(
        self, method: str, url: str, *, headers: Mapping[str, str], content: bytes | None, allow_http: bool
    ) -> Response:
        """One request and its answer. `headers` may not set Host or how the body is framed."""
        asked = _core_request(method, url, headers, content, allow_http=allow_http)
        if time.monotonic() >= _DEADLINE.get():
            raise OutOfTime("the time for it was over before it was sent")
        token = _DEADLINE.set(min(_DEADLINE.get(), time.monotonic() + self._total_s))
        try:
            with self._pool.stream(**asked) as answer:
                return _read(answer)
        except (httpcore.ConnectError, httpcore.ConnectTimeout, httpcore.PoolTimeout) as error:
            raise NotConnected(f"no connection: {_words(error)}") from error
        except httpcore.LocalProtocolError:
            # h11 quotes the offending value, which may be a secret
            raise AddressRefused("a header holds characters that cannot be sent") from None
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise NoAnswer(f"no whole answer: {_words(error)}") from error
        finally:
            _DEADLINE.reset(token)

    def close(self) -> None:
        self._pool.close()


_clients: dict[tuple[tuple[str, ...], int], GuardedClient] = {}
_clients_lock = threading.Lock()


def _client(private_nets: tuple[str, ...], pid: int) -> GuardedClient:
    """One client per settings and process: a connection is never shared over a fork."""
    with _clients_lock:
        if (private_nets, pid) not in _clients:
            _clients[private_nets, pid] = GuardedClient(private_nets)
        return _clients[private_nets, pid]


@atexit.register
def close_connections() -> None:
    """Close what this process keeps open; the next request opens new ones."""
    with _clients_lock:
        for nets, pid in [key for key in _clients if key[1] == os.getpid()]:
            _clients.pop((nets, pid)).close()


def _core_request(
    method: str, url: str, headers: Mapping[str, str], content: bytes | None, *, allow_http: bool
) -> dict[str, Any]:
    """The request as httpcore takes it, with Host and length set by httpx from the address itself."""
    unasked = sorted(name for name in headers if name.lower() in OUR_HEADERS)
    if unasked:
        raise AddressRefused(f"the header {unasked[0]} is set by the address, not by configuration")
    try:
        asked = httpx.Request(
            method, url, headers={"Accept-Encoding": "identity", **headers}, content=content
        )
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise AddressRefused(f"the address cannot be read: {error}") from None
    _check_url(asked.url, allow_http=allow_http)
    return {
        "method": asked.method,
        "url": httpcore.URL(
            scheme=asked.url.raw_scheme,
            host=asked.url.raw_host,
            port=asked.url.port,
            target=asked.url.raw_path,
        ),
        "headers": asked.headers.raw,
        "content": content,
        "extensions": {"timeout": {"connect": CONNECT_S, "pool": CONNECT_S}},
    }


def _check_url(url: httpx.URL, *, allow_http: bool) -> None:
    if url.scheme != "https" and not (allow_http and url.scheme == "http"):
        raise AddressRefused(f"only https may be asked here, not {url.scheme or 'nothing'}")
    if not url.host or not 0 < (url.port or 443) < 65_536:
        raise AddressRefused("the address names no host, or a port that cannot be")
    if url.userinfo:
        raise AddressRefused("the address carries a user name or password")


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _read(answer: httpcore.Response) -> Response:
    body = bytearray()
    for part in answer.iter_stream():
        body += part
        if len(body) > MOST_BYTES:
            break
    headers: dict[str, str] = {}
    for raw_name, raw_value in answer.headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return Response(answer.status, headers, bytes(body[:MOST_BYTES]), cut=len(body) > MOST_BYTES)


def _in(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


_DEADLINE: ContextVar[float] = ContextVar("outgoing_deadline", default=math.inf)


@contextmanager
def all_within(seconds: float) -> Iterator[None]:
    """Everything sent inside shares this much time, however many requests it takes."""
    token = _DEADLINE.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def _remaining_s(at_most: float | None, error: type[Exception]) -> float:
    """Seconds left of this request, at most so many; raises the error when they are used up."""
    remaining = _DEADLINE.get() - time.monotonic()
    if remaining <= 0:
        raise error("the time for the whole request is used up")
    return remaining if at_most is None else min(remaining, at_most)


class _CheckedDialling(httpcore.NetworkBackend):
    """Resolves a name once and dials what it checked; TLS and Host keep the name."""

    def __init__(self, private_nets: tuple[Network, ...], connect_s: float) -> None:
        self._private_nets = private_nets
        self._connect_s = connect_s
        self._dial = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002  (ours is for all addresses together)
        local_address: str | None = None,
        socket_options: SocketOptions | None = None,
    ) -> httpcore.NetworkStream:
        """Dial the first of the host's addresses that answers, all of them allowed, within the limit."""
        addresses = self._checked(host, port)
        give_up_at = time.monotonic() + _remaining_s(self._connect_s, httpcore.ConnectTimeout)
        failure: Exception = httpcore.ConnectTimeout("no time was left to connect")
        for address in addresses:
            left_s = give_up_at - time.monotonic()
            if left_s <= 0:
                break
            try:
                return _TimedStream(
                    self._dial.connect_tcp(address, port, left_s, local_address, socket_options)
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    def _checked(self, host: str, port: int) -> list[str]:
        addresses = _resolve(host, port)
        refused = [ip for ip in addresses if not allowed_address(ip, private_nets=self._private_nets)]
        if refused:
            raise AddressRefused(
                f"{host} is at {refused[0]}, which must not be asked from here; if it is meant to be, "
                "name its net in LEDGER_PRIVATE_NETS"
            )
        return addresses


def _resolve(host: str, port: int) -> list[str]:
    """Every address of the host, each once, in the order the system prefers."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpcore.ConnectError(f"{host} cannot be resolved: {error}") from error
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


class _TimedStream(httpcore.NetworkStream):
    """A connection whose every step ends when the request's time does, however the answer drips in."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _remaining_s(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _remaining_s(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left_s = _remaining_s(timeout, httpcore.ConnectTimeout)
        return _TimedStream(self._stream.start_tls(ssl_context, server_hostname, left_s))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
