"""R78: a delivery's address turned against the inside network.

Kind: an address that means another place once it is used.

Refused when it is saved and again when it is dialled, on the address that is dialled; not tried again. What
is open on the inside is an explicit setting. `tests/ledger/test_http_hostile.py` has every spelling.
"""

from __future__ import annotations

import socket
from typing import Any

import pytest

from ledger.deliveries import deliver_once, send_test
from ledger.events import SYSTEM
from ledger.http import AddressRefused
from ledger.models import Delivery, Destination
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import Scene
from tests.ledger.commands.support import run
from tests.ledger.deliveries.helping import destination, make_due
from tests.support.consumer import ConsumerProcess

INSIDE = [
    *("http://127.0.0.1", "http://[::1]", "http://169.254.169.254/latest", "http://0x7f000001"),
    *("http://2130706433/", "http://[::ffff:10.0.0.1]/", "https://user:pass@books.example/"),
    *("https://books.example:22/", "https://10.0.0.1/"),
]


@pytest.fixture
def closed(consumer: ConsumerProcess, settings: Any) -> ConsumerProcess:
    """A consumer on this machine, which nobody opened."""
    settings.LEDGER_PRIVATE_NETS = ()
    return consumer


@pytest.mark.parametrize("url", INSIDE)
def test_it_is_refused_when_it_is_saved(scene: Scene, closed: ConsumerProcess, url: str) -> None:
    with pytest.raises(AddressRefused):
        destination(scene.people, url)
    ran = run("add_destination", "--tenant", scene.people.tenant.slug, "books", url)
    assert ran.exit == 2
    assert not Destination.objects.exists()
    nothing_else_went_wrong(scene)


def name_at(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """One address per look-up; the last one stays."""
    left, really = list(addresses), socket.getaddrinfo

    def getaddrinfo(host: str, port: Any, *more: Any, **named: Any) -> list[Any]:
        if host != "books.test":
            return list(really(host, port, *more, **named))
        if named.get("flags"):
            raise socket.gaierror(-2, "it is a name")
        ip = left.pop(0) if len(left) > 1 else left[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


def test_a_name_that_turns_inside_is_refused_at_the_send_and_not_tried_again(
    scene: Scene, closed: ConsumerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_at(monkeypatch, "8.8.8.8", "127.0.0.1")
    url = f"http://books.test:{closed.port}/hooks"
    ran = run("add_destination", "--tenant", scene.people.tenant.slug, "books", url)
    assert ran.exit == 0
    scene.confirmed()
    assert deliver_once().states == {"DEAD_LETTERED": 1}
    delivery = Delivery.objects.get()
    assert (delivery.dead_reason, delivery.tries) == ("blocked_address", 1)
    assert delivery.sent_tries.get().ended_as == "blocked_address"
    assert send_test(destination=Destination.objects.get(), actor=SYSTEM).ended_as == "blocked_address"
    make_due()
    assert deliver_once().tried == 0
    assert closed.received() == []
    nothing_else_went_wrong(scene)


def test_a_redirect_to_the_inside_is_not_followed(scene: Scene, consumer: ConsumerProcess) -> None:
    destination(scene.people, consumer)
    scene.confirmed()
    consumer.answer(307, headers={"Location": "http://10.0.0.1/"})
    assert deliver_once().states == {"SENT": 1}
    assert Delivery.objects.get().sent_tries.get().ended_as == "redirect"
    nothing_else_went_wrong(scene)


def test_a_net_is_opened_by_name_only(scene: Scene, consumer: ConsumerProcess) -> None:
    destination(scene.people, consumer)
    scene.confirmed()
    assert deliver_once().states == {"ACKED": 1}
    nothing_else_went_wrong(scene)
