"""What several scenarios of recovery, authority and races need beside the scene's own words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from ledger.models import LookUp, Provider
from ledger.transactions import database_clock
from tests.incidents.scene import PAYMENT, RESOURCES, RULES, Body, Scene, configuration
from tests.support import make
from tests.support.processes import wait_until
from tests.support.proxy import Fault, Honest, Proxy, Reply, Request


def publish(scene: Scene, rules: Mapping[str, Mapping[str, Any]]) -> None:
    """The scene's policy with these tools' rules changed so."""
    changed = {tool: {**RULES.get(tool, {}), **rule} for tool, rule in rules.items()}
    make.policy(scene.people.tenant, tools={**RULES, **changed})


@contextmanager
def asked_through_a_line(scene: Scene, tool: str = PAYMENT, **changed: Any) -> Iterator[Proxy]:
    """Look-ups (and the ledger's own sends) of a tool go over a line whose `fault` the test sets."""
    with Proxy(scene.provider.url) as line:
        configure(scene, tool, configuration(line.url, tool) | changed)
        yield line
    configure(scene, tool, configuration(scene.provider.url, tool))


def configure(scene: Scene, tool: str, config: Body) -> None:
    Provider.objects.filter(tenant=scene.people.tenant, name=RESOURCES[tool]).update(config=config)


def but_not_the_canary(fault: Fault) -> Fault:
    """The harder case: what is known to exist is seen, so only this question goes wrong."""
    return lambda request, ask: ask() if is_canary(request) else fault(request, ask)


def is_canary(request: Request) -> bool:
    return request.target.endswith("/canary")


def query_of(request: Request) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(request.target).query))


def answers_of(about: Body) -> list[LookUp]:
    """What the look-ups of an attempt were answered, oldest first."""
    return list(LookUp.objects.filter(attempt=about["attempt_id"]).order_by("pk"))


def until(moment: Any) -> None:
    """Wait until the database's clock is past this moment."""
    wait_until(lambda: database_clock() > moment, within_s=30, what=f"{moment} is over")


class StoredErrors:
    """A provider that keeps the first answer of each key, also where it was a 500, and replays it."""

    def __init__(self, *, has_the_effect: bool) -> None:
        self.has_the_effect = has_the_effect
        self.keys: list[str] = []
        self.effects = 0

    def __call__(self, request: Request, ask: Honest) -> Reply:
        if request.method != "POST":
            return ask()
        key = request.headers["idempotency-key"]
        self.keys.append(key)
        if self.keys.count(key) > 1:
            return Reply(500, b'{"error": "it broke"}', {"Idempotent-Replayed": "true"})
        if self.has_the_effect:
            ask()
        return Reply(500, b'{"error": "it broke"}')
