"""Which addresses this program may dial, and for how long: the part of every guarded connection.

Names come from configuration that people edit, so a name is resolved once, every address it has must be
allowed, and exactly the checked address is dialled.
"""

from __future__ import annotations

import ipaddress
import math
import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from django.conf import settings

CONNECT_S = 5.0
TOTAL_S = 20.0

Line = TypeVar("Line")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


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


def private_nets() -> tuple[str, ...]:
    """The nets an admin opened."""
    return tuple(getattr(settings, "LEDGER_PRIVATE_NETS", ()))


def unencrypted_allowed() -> bool:
    """May anything be asked without TLS?"""
    return bool(getattr(settings, "LEDGER_ALLOW_HTTP", False))


def dial(host: str, port: int) -> socket.socket:
    """A connection under the settings in force, each of whose steps ends with the time there is for all.
    Raises AddressRefused or NotConnected."""

    def connect(address: str, left_s: float) -> socket.socket:
        return socket.create_connection((address, port), left_s)

    connection = first_that_answers(host, port, private_nets(), CONNECT_S, connect)
    connection.settimeout(remaining_s(TOTAL_S, NotConnected))
    return connection


def first_that_answers(
    host: str,
    port: int,
    nets: Iterable[Network | str],
    at_most_s: float,
    connect: Callable[[str, float], Line],
    failures: tuple[type[Exception], ...] = (OSError,),
) -> Line:
    """Whatever `connect` makes of the first of the host's addresses that answers, all of them allowed.
    Raises AddressRefused or NotConnected; `failures` is what `connect` raises."""
    give_up_at = time.monotonic() + remaining_s(at_most_s, NotConnected)
    addresses = checked_addresses(host, port, nets, at_most_s=give_up_at - time.monotonic())
    failure: Exception | str = "no time was left to connect"
    for address in addresses:
        left_s = give_up_at - time.monotonic()
        if left_s <= 0:
            break
        try:
            return connect(address, left_s)
        except failures as error:
            failure = error
    raise NotConnected(f"no connection: {str(failure) or type(failure).__name__}")


def checked_addresses(
    host: str, port: int, nets: Iterable[Network | str], *, at_most_s: float = CONNECT_S
) -> list[str]:
    """Every address of the host, each once, in the order the system prefers. Raises AddressRefused where one
    of them must not be dialled, NotConnected where there is none."""
    return _checked(host, _resolved(host, port, at_most_s), nets)


def checked_literal(host: str, nets: Iterable[Network | str]) -> None:
    """Where the host is an address in whatever spelling and no name: refuse it as it would be when dialled.
    Asks no name server, so it may be called inside a transaction. Raises AddressRefused."""
    with suppress(OSError, ValueError):
        _checked(host, socket.getaddrinfo(host, 0, flags=socket.AI_NUMERICHOST), nets)


def _resolved(host: str, port: int, at_most_s: float) -> list[Any]:
    """What the system knows of a name. It has no time limit of its own, and name servers may be slow on
    purpose: it is asked in a thread that is left behind when the time is over."""
    answers: queue.SimpleQueue[list[Any] | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))
        except (OSError, ValueError) as error:
            answers.put(error)

    threading.Thread(target=ask, daemon=True, name="resolve").start()
    try:
        found = answers.get(timeout=max(0.0, at_most_s))
    except queue.Empty:
        raise NotConnected(f"no connection: {host} was not resolved in time") from None
    if isinstance(found, Exception):
        raise NotConnected(f"no connection: {host} cannot be resolved: {found}") from found
    return found


def _checked(host: str, found: Iterable[Any], nets: Iterable[Network | str]) -> list[str]:
    addresses = list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))
    refused = [ip for ip in addresses if not allowed_address(ip, private_nets=nets)]
    if refused:
        raise AddressRefused(
            f"{host} is at {refused[0]}, which must not be asked from here; if it is meant to be, "
            "name its net in LEDGER_PRIVATE_NETS"
        )
    return addresses


def _in(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


_ends_at: ContextVar[float] = ContextVar("outgoing_ends_at", default=math.inf)


@contextmanager
def all_within(seconds: float) -> Iterator[None]:
    """Everything sent inside shares this much time, however many requests it takes; less where it is itself
    inside of less."""
    token = _ends_at.set(min(_ends_at.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _ends_at.reset(token)


def remaining_s(at_most: float | None = None, error: type[Exception] = NoAnswer) -> float:
    """Seconds left for everything that is sent, at most so many; raises the error when they are used up."""
    remaining = _ends_at.get() - time.monotonic()
    if remaining <= 0:
        raise error("the time for the whole request is used up")
    return remaining if at_most is None else min(remaining, at_most)


def is_time_left() -> bool:
    """Is there any for everything that is sent?"""
    return time.monotonic() < _ends_at.get()


class Speaks(Protocol):
    """A client of whatever protocol, by the connection it has; None before it is there."""

    @property
    def sock(self) -> socket.socket | None: ...


@contextmanager
def cut_off_in_time() -> Iterator[list[Speaks]]:
    """However slowly the other side drips: the connections of the clients that are put into this list end
    when the time for everything does. Raises OutOfTime before anybody is asked."""
    clients: list[Speaks] = []
    timer = threading.Timer(remaining_s(TOTAL_S, OutOfTime), lambda: _cut_off(clients))
    timer.daemon = True
    timer.start()
    try:
        yield clients
    finally:
        timer.cancel()


def _cut_off(clients: list[Speaks]) -> None:
    for client in clients:
        with suppress(OSError):
            if client.sock is not None:
                client.sock.shutdown(socket.SHUT_RDWR)


def encrypted(connection: socket.socket, host: str) -> ssl.SSLSocket:
    """TLS over a connection, its certificate checked for this name. Raises NotConnected."""
    try:
        return ssl.create_default_context().wrap_socket(connection, server_hostname=host)
    except (ssl.SSLError, OSError, ValueError) as error:
        connection.close()
        raise NotConnected(f"no TLS with {host}: {error}") from error
