"""A provider that misbehaves on request: the demo's program with faults, and the handle tests hold it by.

    with ProviderProcess(tmp_path) as provider:
        provider.set_mode("accept_then_drop", times=1)
        ...
        assert provider.effects(correlation_id) == 1

It runs as a process of its own on its own disk, so its count of effects survives whatever is killed.
"""

import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

import httpx

from dashboard.management.demo.books import CANARY_ID
from dashboard.management.demo.provider import Answer, Handler, arguments, problem, serve
from tests.support.serving import start_program

SEND, LOOK_UP = "send", "look_up"
HANG_S = 60.0

STATUS_WORDS = {
    "in_progress": "pending",
    "failed": "failed",
    "reversed": "refunded",
    "unknown_word": "zombified",
}
LOOK_UP_ONLY = {
    "lag", "not_found_for_forbidden", "wrong_tenant", "several", "other_content", "endless_pages", "not_json",
    *STATUS_WORDS,
}  # fmt: skip
SEND_ONLY = {"accept_then_drop", "accept_then_hang"}
BOTH = {
    "honest",
    "down",
    "drop_before",
    "hang",
    "too_many_requests",
    "server_error",
    "forbidden",
    "truncated",
}
MODES = LOOK_UP_ONLY | SEND_ONLY | BOTH


class Faults:
    """The mode in force, what arrived, and the gate that hanging answers wait at."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.requests: list[dict[str, Any]] = []
        self.limit: dict[str, int] = {}
        self._mode, self._on, self._left = "honest", "", -1
        self._releases = 0
        self.hanging = 0

    def set(self, mode: str, *, on: str, times: int) -> None:
        """`on`: send, look_up or empty for both; `times`: for so many requests, -1 until changed."""
        with self.changed:
            self._mode, self._on, self._left = mode, on, times

    def arrived(self, method: str, target: str) -> Answer | None:
        """Note it. The answer of a provider that was asked too often, or None."""
        with self.changed:
            now = time.monotonic()
            self.requests.append({"method": method, "target": target, "at": now})
            self.changed.notify_all()
            lately = sum(1 for request in self.requests[-1000:] if request["at"] > now - 1)
        if not self.limit or lately <= self.limit["per_s"]:
            return None
        return Answer(429, {"error": "slow down"}, {"Retry-After": str(self.limit["retry_after"])})

    def wait_for(self, what: str, count: int, timeout: float) -> bool:
        """True as soon as so many requests of this method (empty: any) arrived, or so many are "hanging"."""
        with self.changed:
            return self.changed.wait_for(
                lambda: (self.hanging if what == "hanging" else self.count(what)) >= count, timeout
            )

    def count(self, method: str) -> int:
        return sum(1 for request in self.requests if method in {"", request["method"]})

    def take(self, kind: str) -> str:
        """The mode for one request of this kind, used up once."""
        with self.changed:
            if self._left == 0 or not self._meant_for(kind):
                return "honest"
            self._left -= 1 if self._left > 0 else 0
            return self._mode

    def _meant_for(self, kind: str) -> bool:
        unmeant = LOOK_UP_ONLY if kind == SEND else SEND_ONLY
        return self._on in {"", kind} and self._mode not in unmeant

    def hang(self) -> None:
        """Wait for the next release."""
        with self.changed:
            seen = self._releases
            self.hanging += 1
            self.changed.notify_all()
            self.changed.wait_for(lambda: self._releases > seen, HANG_S)
            self.hanging -= 1

    def release(self) -> None:
        with self.changed:
            self._releases += 1
            self.changed.notify_all()


FAULTS = Faults()


class FaultyHandler(Handler):
    """The demo's provider, with one fault in force."""

    def answer_to(self, path: list[str], query: dict[str, str], body: dict[str, Any]) -> Answer | None:
        if path[0].startswith("_"):
            return self._control(path[0], query, body)
        if path == ["effects"]:
            return super().answer_to(path, query, body)
        too_many = FAULTS.arrived(self.command, self.path)
        if too_many is not None:
            return too_many
        mode = FAULTS.take(SEND if self.command == "POST" else LOOK_UP)
        return self._faulty(mode, path, lambda: super(FaultyHandler, self).answer_to(path, query, body))

    def _control(self, name: str, query: dict[str, str], body: dict[str, Any]) -> Answer:
        if name == "_mode":
            FAULTS.set(body["mode"], on=body.get("on", ""), times=body.get("times", -1))
        elif name == "_release":
            FAULTS.release()
        elif name == "_limit":
            FAULTS.limit = body
        elif name == "_forget":
            self.server.books._by_key.clear()
        elif name == "_wait":
            arrived = FAULTS.wait_for(query.get("what", ""), int(query["count"]), float(query["timeout"]))
            return Answer(200, {"arrived": arrived})
        return Answer(200, {"requests": FAULTS.requests})

    def _faulty(self, mode: str, path: list[str], honest: Callable[[], Answer | None]) -> Answer | None:
        if mode in {"down", "drop_before"}:
            self.close_connection = True
            return None
        if mode == "hang":
            FAULTS.hang()
        instead = INSTEAD.get(mode)
        if instead is not None:
            return instead
        answer = honest()
        if mode == "accept_then_hang":
            FAULTS.hang()
        if answer is None or mode == "accept_then_drop":
            self.close_connection = True
            return None
        return self._altered(mode, path, answer)

    def _altered(self, mode: str, path: list[str], answer: Answer) -> Answer | None:
        if mode == "truncated":
            self.say(answer, cut_after=5)
            return None
        document = answer.document
        if "data" in document:
            document = self._altered_list(mode, document)
        elif path[-1] == CANARY_ID:
            document = {**document, "id": "canary-of-another"} if mode == "wrong_tenant" else document
        elif mode in {"lag", "wrong_tenant"}:
            return problem(404, "there is no such thing")
        else:
            document = altered_thing(mode, document)
        return Answer(answer.status, document, answer.headers)

    def _altered_list(self, mode: str, document: dict[str, Any]) -> dict[str, Any]:
        if mode in {"lag", "wrong_tenant"}:
            return {"data": [], "next": None}
        if mode == "endless_pages":
            return {"data": [], "next": f"{self.path}&page={FAULTS.count('GET') + 1}"}
        things = [altered_thing(mode, thing) for thing in document["data"]]
        if mode == "several":
            things += [{**thing, "id": f"{thing['id']}-again"} for thing in things]
        return {**document, "data": things}

    def say(self, answer: Answer, *, cut_after: int | None = None) -> None:
        if answer.document == "not json":
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"<p>?")
            return
        super().say(answer, cut_after=cut_after)


INSTEAD = {
    "too_many_requests": Answer(429, {"error": "slow down"}, {"Retry-After": "1"}),
    "server_error": problem(503, "out of order"),
    "forbidden": problem(403, "not for you"),
    "not_found_for_forbidden": problem(404, "there is no such thing"),
    "not_json": Answer(200, "not json"),
}


def altered_thing(mode: str, thing: dict[str, Any]) -> dict[str, Any]:
    """One record as the mode shows it; unchanged in a mode that leaves records alone."""
    if mode in STATUS_WORDS:
        return {**thing, "status": STATUS_WORDS[mode]}
    if mode != "other_content":
        return thing
    kept = {"id", "status", "metadata", "correlation_id"}
    return {name: value if name in kept else _other(value) for name, value in thing.items()}


def _other(value: Any) -> Any:
    return value + 1 if isinstance(value, int) else f"{value} (other)"


def asking(resource: str, fields: Iterable[str]) -> dict[str, Any]:
    """How the `http` adapter asks this provider about what was sent to the address `resource`."""
    return {
        "request": {"method": "GET", "url": f"{resource}?correlation_id={{correlation_id}}"},
        "matches": "/data",
        "match_where": {"/metadata/correlation_id": "{correlation_id}"},
        "reference": "/id",
        "state": {
            "pointer": "/status",
            "done": ["succeeded", "sent", "open", "live"],
            "in_progress": ["pending"],
            "failed": ["failed"],
            "reversed": ["refunded"],
        },
        "content": {f"/{name}": f"/{name}" for name in fields},
        "canary": {"request": {"url": f"{resource}/canary"}, "pointer": "/id", "value": "canary"},
        "rate_per_s": 1000,
    }


def sending(resource: str, fields: Iterable[str]) -> dict[str, Any]:
    """How the ledger itself sends there."""
    return {
        "url": resource,
        "headers": {"Idempotency-Key": "{idempotency_key}"},
        "body": {
            **{name: f"{{args/{name}}}" for name in fields},
            "metadata": {"correlation_id": "{correlation_id}"},
        },
    }


class ProviderProcess:
    """The handle of one provider process. Stopped and started again it keeps its port and its effects."""

    def __init__(self, directory: Path, *, token: str = "", idempotent: str = "refunds,deployments") -> None:
        self._arguments = ["--dir", str(directory), "--token", token, "--idempotent", idempotent]
        self._process: subprocess.Popen[str] | None = None
        self.port = 0
        self.url = ""

    def start(self) -> Self:
        """Start, and return once it listens."""
        options = ["--until-stdin-closes", *self._arguments, "--port", str(self.port)]
        self._process, line = start_program("tests.support.provider", *options)
        said = json.loads(line)
        self.port, self.url = said["port"], said["url"]
        return self

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def stop(self, *, how: signal.Signals = signal.SIGTERM) -> None:
        """End it and wait for the end; `how=signal.SIGKILL` gives it no say."""
        if self._process is None:
            return
        self._process.send_signal(how)
        self._process.wait(10)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process = None

    def kill(self) -> None:
        self.stop(how=signal.SIGKILL)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def set_mode(self, mode: str, *, on: str = "", times: int = -1) -> None:
        """Put a fault (of MODES) in force, for `send`, `look_up` or both, so often (-1: until changed)."""
        assert mode in MODES, f"no such mode: {mode}"
        self._call("PUT", "/_mode", {"mode": mode, "on": on, "times": times})

    def set_limit(self, per_s: int, *, retry_after: int) -> None:
        """From now on more than so many requests within a second are answered 429."""
        self._call("PUT", "/_limit", {"per_s": per_s, "retry_after": retry_after})

    def forget_keys(self) -> None:
        """As after the life of every idempotency key it knew."""
        self._call("PUT", "/_forget", {})

    def release(self) -> None:
        """Let every answer that hangs go on."""
        self._call("PUT", "/_release", {})

    def wait_for(self, method: str, count: int = 1, *, timeout: float = 10.0) -> None:
        """Return as soon as so many requests of this method arrived; fail after `timeout` s."""
        query = f"/_wait?what={method}&count={count}&timeout={timeout}"
        assert self._call("GET", query)["arrived"], f"fewer than {count} {method} within {timeout} s"

    def wait_for_hanging(self, count: int = 1, *, timeout: float = 10.0) -> None:
        """Return as soon as so many answers hang; under accept_then_hang their effects are stored by then."""
        self.wait_for("hanging", count, timeout=timeout)

    def requests(self, method: str = "") -> list[str]:
        """The targets asked for since the start, oldest first."""
        arrived = self._call("GET", "/_requests")["requests"]
        return [request["target"] for request in arrived if method in {"", request["method"]}]

    def arrivals(self) -> list[float]:
        """When each request of its present life arrived, by the monotonic clock of this machine."""
        return [request["at"] for request in self._call("GET", "/_requests")["requests"]]

    def effects(self, correlation_id: str) -> int:
        """How often the provider really did what carries this correlation id."""
        return int(self._call("GET", "/effects")["by_correlation_id"].get(correlation_id, 0))

    def all_effects(self) -> dict[str, int]:
        """The same of every correlation id it has seen."""
        found: dict[str, int] = self._call("GET", "/effects")["by_correlation_id"]
        return found

    def total_effects(self) -> int:
        return int(self._call("GET", "/effects")["total"])

    def send(self, resource: str, body: dict[str, Any], *, key: str = "") -> dict[str, Any]:
        """Have an effect directly, as some other program would."""
        answer: dict[str, Any] = self._call("POST", f"/{resource}", body, {"Idempotency-Key": key})
        return answer

    def _call(
        self, method: str, target: str, body: object = None, headers: dict[str, str] | None = None
    ) -> Any:
        with httpx.Client(base_url=self.url, trust_env=False, timeout=HANG_S) as client:
            return client.request(method, target, json=body, headers=headers).raise_for_status().json()


if __name__ == "__main__":
    serve(arguments().parse_args(), handler=FaultyHandler)
