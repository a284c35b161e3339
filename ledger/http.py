"""The one guarded client for everything this program sends out.

It dials as `dialling` says. No redirects, no proxies from the environment, no
cookies, nothing decompressed, an answer of at most 64 kB, 20 s for everything together.
"""

import atexit
import ipaddress
import os
import re
import ssl
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpcore
import httpx

from ledger.dialling import (
    CONNECT_S,
    TOTAL_S,
    AddressRefused,
    Network,
    NoAnswer,
    NotConnected,
    OutgoingError,
    OutOfTime,
    all_within,
    allowed_address,
    checked_addresses,
    checked_literal,
    first_that_answers,
    is_time_left,
    private_nets,
    remaining_s,
    unencrypted_allowed,
)

__all__ = [
    "AddressRefused",
    "GuardedClient",
    "NoAnswer",
    "NotConnected",
    "OutOfTime",
    "OutgoingError",
    "Response",
    "all_within",
    "allowed_address",
    "check_address",
    "close_connections",
    "is_time_left",
    "request",
]

MOST_BYTES = 65_536
PART_BYTES = 16_384
IDLE_S = 30.0
MOST_IDLE = 64
NO_PORTS_OF_HTTP = frozenset(
    (
        *(1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103),
        *(104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513),
        *(514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719),
        *(1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 5432, 6000, 6379, 6566, 6665, 6666, 6667, 6668),
        *(6669, 6679, 6697, 10080, 11211),
    )
)
"""The bad ports of the Fetch standard, and those of our own database, broker and the usual cache: whoever can
name an address should not be able to speak to what listens there."""

OUR_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})

_HOST = re.compile(rb"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")

SocketOptions = Iterable[
    tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
]


@dataclass(frozen=True)
class Response:
    """A whole answer; `cut` when it was longer than 64 kB and only its beginning is here."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool


def request(
    method: str, url: str, *, headers: Mapping[str, str] | None = None, content: bytes | None = None
) -> Response:
    """Send one request under the settings in force. Raises OutgoingError where there is no whole answer."""
    return _client(private_nets(), os.getpid()).request(
        method,
        url,
        headers=headers or {},
        content=content,
        allow_http=unencrypted_allowed(),
    )


def check_address(url: str, *, resolve: bool = True) -> None:
    """May this be asked under the settings in force, as far as can be known before it is? A name that nobody
    knows, or not yet, passes. Without `resolve` no name server is asked, which a transaction must not wait
    for. Raises AddressRefused."""
    try:
        read = httpx.URL(url)
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise AddressRefused(f"the address cannot be read: {error}") from None
    _check_url(read, allow_http=unencrypted_allowed())
    host = read.raw_host.decode("ascii")
    checked_literal(host, private_nets())
    if resolve:
        with suppress(NotConnected):
            checked_addresses(host, read.port or 443, private_nets())


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
        self._ssl_context = ssl_context or httpx.create_ssl_context()
        self._dialling = _CheckedDialling(tuple(map(ipaddress.ip_network, private_nets)), connect_s)
        self._idle = _Idle()

    def request(
        self, method: str, url: str, *, headers: Mapping[str, str], content: bytes | None, allow_http: bool
    ) -> Response:
        """One request and its answer. `headers` may not set Host or how the body is framed."""
        asked = _core_request(method, url, headers, content, allow_http=allow_http)
        remaining_s(error=OutOfTime)
        try:
            with (
                all_within(self._total_s),
                self._connection(asked["url"].origin) as connection,
                connection.stream(**asked) as answer,
            ):
                return _read(answer)
        except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
            raise NotConnected(f"no connection: {_words(error)}") from error
        except httpcore.LocalProtocolError:
            # h11 quotes the offending value, which may be a secret
            raise AddressRefused("a header holds characters that cannot be sent") from None
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise NoAnswer(f"no whole answer: {_words(error)}") from error

    @contextmanager
    def _connection(self, origin: httpcore.Origin) -> Iterator[httpcore.HTTPConnection]:
        """One for this request alone. However many hang, none keeps another from dialling."""
        connection = self._idle.take(origin) or httpcore.HTTPConnection(
            origin, self._ssl_context, keepalive_expiry=IDLE_S, network_backend=self._dialling
        )
        try:
            yield connection
        finally:
            self._idle.keep(connection)

    def close(self) -> None:
        self._idle.close()


class _Idle:
    """Open connections that nobody uses. The pool of httpcore looks at every connection it has, under one
    lock, at the beginning and end of each request: with sixty under way that costs more than the requests."""

    def __init__(self) -> None:
        self._by_age: list[httpcore.HTTPConnection] = []
        self._lock = threading.Lock()

    def take(self, origin: httpcore.Origin) -> httpcore.HTTPConnection | None:
        """The one used last that is still good."""
        while connection := self._pop(origin):
            if not connection.has_expired():
                return connection
            connection.close()
        return None

    def _pop(self, origin: httpcore.Origin) -> httpcore.HTTPConnection | None:
        with self._lock:
            for place in reversed(range(len(self._by_age))):
                if self._by_age[place].can_handle_request(origin):
                    return self._by_age.pop(place)
        return None

    def keep(self, connection: httpcore.HTTPConnection) -> None:
        """Unless it can carry no further request; the oldest goes where there are too many or its time is
        over."""
        if connection.is_closed() or not connection.is_idle():
            connection.close()
            return
        with self._lock:
            self._by_age.append(connection)
            oldest = self._by_age[0]
            if len(self._by_age) <= MOST_IDLE and not oldest.has_expired():
                return
            self._by_age.remove(oldest)
        oldest.close()

    def close(self) -> None:
        with self._lock:
            idle, self._by_age = self._by_age, []
        for connection in idle:
            connection.close()


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
        "extensions": {"timeout": {"connect": CONNECT_S}},
    }


def _check_url(url: httpx.URL, *, allow_http: bool) -> None:
    if url.scheme != "https" and not (allow_http and url.scheme == "http"):
        raise AddressRefused(f"only https may be asked here, not {url.scheme or 'nothing'}")
    if not _HOST.fullmatch(url.raw_host) or not _is_readable(url):
        raise AddressRefused("the address names no host")
    if url.port is not None and not 0 < url.port < 65_536:
        raise AddressRefused("the address names a port that cannot be")
    if url.port in NO_PORTS_OF_HTTP:
        raise AddressRefused(f"port {url.port} belongs to another protocol")
    if url.userinfo:
        raise AddressRefused("the address carries a user name or password")


def _is_readable(url: httpx.URL) -> bool:
    """Is a name in foreign letters one that those letters can be read back from?"""
    try:
        return bool(url.host)
    except ValueError:
        return False


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

        def connect(address: str, left_s: float) -> httpcore.NetworkStream:
            return self._dial.connect_tcp(address, port, left_s, local_address, socket_options)

        failures = (httpcore.ConnectError, httpcore.ConnectTimeout)
        return _TimedStream(
            first_that_answers(host, port, self._private_nets, self._connect_s, connect, failures)
        )


class _TimedStream(httpcore.NetworkStream):
    """A connection whose every step ends when the request's time does, however the answer drips in, or the
    body out: each part that is taken of what is written at once would have all the time again."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, remaining_s(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for begin in range(0, len(buffer), PART_BYTES):
            part = buffer[begin : begin + PART_BYTES]
            self._stream.write(part, remaining_s(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left_s = remaining_s(timeout, httpcore.ConnectTimeout)
        return _TimedStream(self._stream.start_tls(ssl_context, server_hostname, left_s))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
