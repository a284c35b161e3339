"""One lane: a process with a PostgreSQL server, a provider and warm children of its own."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx

from ledger import outbox
from tests.crash.suite import agent, clerk, consumer, desk, provider, web, worker
from tests.crash.suite.board import Board
from tests.crash.suite.children import Broker, Child, ChildFailed, Line
from tests.crash.suite.database import Server
from tests.crash.suite.injection import Injector, install
from tests.crash.suite.plan import Fault
from tests.crash.suite.warmth import warm_up

CLERK_WITHIN_S = 60.0
CLERK_TRIES = 50
ARMED_WITHIN_S = 60.0
"""A child may still be in a call that takes its time on a busy machine."""
AGENTS = ("a1", "a2")
BYSTANDER = "a3"
"""An agent of the same name that cancels, and posts what it should not."""
WORKERS = ("w1", "w2")
DELIVERER = "d1"
"""A worker of the queue of deliveries."""
TICK_S = 0.01


@dataclass
class Lane:
    """Everything one lane holds. Only its children ever speak to its database."""

    number: int
    directory: Path
    server: Server
    board: Board
    children: dict[str, Child]
    web_url: str
    provider_at: tuple[str, int]
    provider_url: str
    consumer_url: str
    http: httpx.Client
    orders: dict[str, Any] = field(default_factory=lambda: {"faults": [], "patience": 1.0, "consumers": {}})
    stretch: float = 1.0

    @property
    def journal_of_effects(self) -> Path:
        return self.directory / provider.JOURNAL

    @property
    def books_of_consumers(self) -> Path:
        return self.directory / consumer.BOOKS

    @property
    def struck(self) -> Iterator[Child]:
        """Children that planned faults may strike."""
        return (child for name, child in self.children.items() if name not in ("clerk", "provider"))

    def arm(self, faults: tuple[Fault, ...], patience: float, consumers: Mapping[str, Any]) -> None:
        """From now on these may strike, each once; calls of the children may take so many times as long; and
        the consumers behave like this. Where none is to strike, those of before do not either while they are
        taken back."""
        if faults:
            self.board.clear_slots()
        else:
            self.board.disarm()
        self.orders = {
            "faults": [asdict(fault) for fault in faults],
            "patience": patience,
            "consumers": consumers,
        }
        for child in self.struck:
            child.tell(**self.orders)
        self.until(lambda: all(self._is_armed(child) for child in self.struck), ARMED_WITHIN_S, "armed")
        for child in self.struck:
            child.heard.clear()

    def _is_armed(self, child: Child) -> bool:
        """Also where the last blow of the time before fell after anybody looked."""
        state = child.look()
        if state == "dead":
            child.fork()
            child.tell(**self.orders)
        elif state == "stopped":
            child.resume()
        return child.idle

    def fork_again(self, child: Child) -> None:
        """The next life of a child that died, armed as the one before."""
        child.fork()
        child.tell(**self.orders)
        self.until(lambda: child.idle or child.look() == "dead", 10.0, f"{child.name} is up")
        child.heard.clear()

    def wait(self, seconds: float) -> None:
        """Until a child says something, at most so long."""
        wires = [child.wire for child in self.children.values() if child.wire is not None]
        ready, _, _ = select.select(wires, [], [], max(0.0, seconds))
        for child in self.children.values():
            if child.wire in ready:
                child.listen()

    def until(self, condition: Callable[[], bool], within_s: float, what: str) -> None:
        give_up_at = time.monotonic() + within_s
        while not condition():
            if time.monotonic() > give_up_at:
                raise ChildFailed(f"lane {self.number}: not within {within_s:.0f} s: {what}")
            self.wait(TICK_S)

    def clerk(self, do: str, **more: Any) -> Any:
        """Have the clerk do something; again where the server was just stopped, or is just stopping."""
        for tries_left in reversed(range(CLERK_TRIES)):
            said = self.ask(self.children["clerk"], do=do, **more)
            if "done" in said:
                return said["done"]
            if not self.server.heal():
                self.wait(TICK_S)
            if not tries_left or not said["error"].startswith(("OperationalError", "InterfaceError", "Busy")):
                raise ChildFailed(said["error"] + "\n" + said["trace"])
        raise AssertionError("unreachable")

    def ask(self, child: Child, **command: Any) -> dict[str, Any]:
        """Give a command to an idle child and wait for its answer."""
        child.tell(**command)
        self.until(lambda: bool(child.heard) or child.look() == "dead", CLERK_WITHIN_S, str(command)[:80])
        return child.heard.pop(0) if child.heard else {"error": "Died", "trace": ""}

    def tell_provider(self, what: str, body: dict[str, Any]) -> dict[str, int]:
        """Which words of its scripts it has used since the last ones."""
        answer = self.http.put(f"{self.provider_url}/{what}", json=body).raise_for_status()
        used: dict[str, int] = answer.json()
        return used

    def start_over(self) -> None:
        """After a schedule that broke off: new children, and nothing planned."""
        self.server.heal()
        self.board.disarm()
        for child in self.struck:
            child.kill()
            child.fork()

    def close(self) -> None:
        self.http.close()
        for child in self.children.values():
            child.kill()
        self.server.stop()


@contextmanager
def opened(number: int, directory: Path, server: Server, board: Board) -> Iterator[Lane]:
    """A lane with all its children; at the end nothing of it is left running."""
    listening = {name: _listening() for name in ("web", "provider", "consumer")}
    addresses = {name: f"http://127.0.0.1:{sock.getsockname()[1]}" for name, sock in listening.items()}
    lane = Lane(
        number=number,
        directory=directory,
        server=server,
        board=board,
        children={},
        web_url=addresses["web"],
        provider_at=("127.0.0.1", listening["provider"].getsockname()[1]),
        provider_url=addresses["provider"],
        consumer_url=addresses["consumer"],
        http=httpx.Client(trust_env=False, timeout=10.0),
    )
    warm_up()
    for name, body in _bodies(lane, listening).items():
        lane.children[name] = Child(name, body)
        lane.children[name].fork()
    try:
        yield lane
    finally:
        lane.close()


def _listening() -> socket.socket:
    sock = socket.create_server(("127.0.0.1", 0), backlog=64)
    sock.set_inheritable(True)
    return sock


def _bodies(lane: Lane, listening: dict[str, socket.socket]) -> dict[str, Callable[[Line], None]]:
    def injected(name: str, work: Callable[[Line, Injector, str], None]) -> Callable[[Line], None]:
        def body(line: Line) -> None:
            injector = Injector(lane.board, line.say, lane.server.home.database)
            install(injector)
            setattr(outbox, "current_app", Broker(line))  # noqa: B010  (it is of another type)
            work(line, injector, lane.children[name].life_id)

        return body

    serve_web = injected("web", lambda line, injector, _: web.serve(line, injector, listening["web"]))

    def serve_consumers(line: Line, injector: Injector, _: str) -> None:
        consumer.serve(
            line, injector, listening["consumer"], consumer.Orders(lane.books_of_consumers, lane.web_url)
        )

    return {
        "clerk": lambda line: clerk.work(line, clerk.Urls(lane.provider_url, lane.consumer_url)),
        "provider": lambda _: provider.serve(listening["provider"], lane.directory),
        "web": serve_web,
        "consumer": injected("consumer", serve_consumers),
        **{name: injected(name, worker.work) for name in (*WORKERS, DELIVERER)},
        **{name: injected(name, agent.work) for name in (*AGENTS, BYSTANDER)},
        "desk": injected("desk", lambda line, injector, _: desk.work(line, injector)),
    }


def own_cpu_s() -> float:
    """CPU of this process and of all its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
