"""The provider simulator: a process with its own disk, which counts its effects whatever becomes of us.

It shares its rules with `tests/support/provider.py` and adds what a schedule needs: a script per operation,
keys that are honoured for so long, effects that come late, and a journal of each effect: by whom, for which
attempt, and when.

    POST /things            a send, Idempotency-Key, X-Sent-By and X-Attempt beside it
    GET  /things?correlation_id=&page=   a look-up
    GET  /canary/<correlation id>        hidden from a key that may not look
    PUT  /_script           {"stretch": n, "scripts": {correlation id: {sends, look_ups, keys_s}}}
    PUT  /_quiet            everything that was under way is over, and nothing is slow from now on; answers
                            how often each word of the scripts was used: {"sends: slow": 1}
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

from dashboard.management.demo.provider import Answer, Handler, problem
from tests.support.provider import INSTEAD, altered_thing

SLOW_S = 0.6
JOURNAL = "effects.jsonl"
Thing = dict[str, Any]


class Shelf:
    """What was done for each correlation id, which keys are remembered, and what each script still holds."""

    def __init__(self, directory: Path) -> None:
        self.lock = threading.Condition()
        self.things: dict[str, list[Thing]] = {}
        self.by_key: dict[str, tuple[float, Thing]] = {}
        self.stored: dict[str, Answer] = {}
        self.scripts: dict[str, Thing] = {}
        self.hidden: dict[str, bool] = {}
        self.quiet, self.slow_s = True, SLOW_S
        self.used: Counter[str] = Counter()
        self.under_way = 0
        self._count = 0
        self._journal = (directory / JOURNAL).open("a", encoding="utf-8", buffering=1)

    def script(self, scripts: dict[str, Thing], stretch: float) -> None:
        """A new schedule, on a machine that is so many times slower than one at rest."""
        with self.lock:
            self.slow_s = SLOW_S * stretch
            self.things, self.by_key, self.stored, self.hidden = {}, {}, {}, {}
            self.scripts, self.quiet, self.used = scripts, False, Counter()
            self._journal.truncate(0)  # of the schedules before nobody asks any more

    def become_quiet(self) -> None:
        """What was slow has its effect now, what was pending is done, and nothing is either from now on."""
        with self.lock:
            self.quiet = True
            self.lock.notify_all()
            self.lock.wait_for(lambda: self.under_way == 0, timeout=2.0)
            for thing in (thing for things in self.things.values() for thing in things):
                thing["status"] = "succeeded" if thing["status"] == "pending" else thing["status"]

    def mode(self, correlation_id: str, kind: str) -> str:
        with self.lock:
            words = self.scripts.get(correlation_id, {}).get(kind, [])
            if not words:
                return "honest"
            self.used[f"{kind}: {words[0]}"] += 1
            return str(words.pop(0))

    def wait(self) -> None:
        """Take longer than anybody waits, or until the quiet phase begins."""
        with self.lock:
            self.under_way += 1
            self.lock.wait_for(lambda: self.quiet, timeout=self.slow_s)

    def over(self) -> None:
        with self.lock:
            self.under_way -= 1
            self.lock.notify_all()

    def create(
        self, body: Thing, *, key: str, sent_by: str, attempt: str, status: str, was_slow: bool
    ) -> tuple[Thing, bool]:
        """Have the effect, or find the one that a remembered key had. While a request is under way its key is
        not forgotten."""
        correlation_id = str(body.get("metadata", {}).get("correlation_id", ""))
        with self.lock:
            keys_s = self.scripts.get(correlation_id, {}).get("keys_s", 0.0)
            known = self.by_key.get(key) if key and keys_s else None
            if known is not None and (was_slow or time.monotonic() < known[0] + keys_s):
                return known[1], False
            self._count += 1
            thing = {**body, "id": f"thing_{os.getpid()}_{self._count:06d}", "status": status}
            self.things.setdefault(correlation_id, []).append(thing)
            if key:
                self.by_key[key] = (time.monotonic(), thing)
            self._write(thing, key=key, sent_by=sent_by, attempt=attempt, correlation_id=correlation_id)
            return thing, True

    def _write(self, thing: Thing, **facts: str) -> None:
        line = {**facts, "id": thing["id"], "status": thing["status"], "at": time.time()}
        self._journal.write(json.dumps(line) + "\n")


class SimulatedHandler(Handler):
    """One caller's connection."""

    shelf: Shelf
    disable_nagle_algorithm = True

    def answer_to(self, path: list[str], query: dict[str, str], body: dict[str, Any]) -> Answer | None:
        if path == ["_script"]:
            return self._control(lambda: self.shelf.script(body["scripts"], body["stretch"]))
        if path == ["_quiet"]:
            return self._control(self.shelf.become_quiet)
        if path[0] == "canary":
            return INSTEAD["forbidden"] if self.shelf.hidden.get(path[1]) else Answer(200, {"id": "canary"})
        if self.command == "POST":
            return self._send(body)
        return self._look_up(query)

    def _control(self, work: Callable[[], None]) -> Answer:
        work()
        return Answer(200, dict(self.shelf.used))

    # --- sends --------------------------------------------------------------------------------------------

    def _send(self, body: Thing) -> Answer | None:
        key = self.headers.get("Idempotency-Key", "")
        if key in self.shelf.stored:
            return self.shelf.stored[key]
        mode = self.shelf.mode(str(body.get("metadata", {}).get("correlation_id", "")), "sends")
        if mode == "slow":
            self.shelf.wait()
        refusal = self._refusal(mode, key)
        if refusal is not None or mode == "drop_before":
            return refusal or self._hang_up()
        answer = self._accept(mode, body, key)
        if mode == "slow":
            self.shelf.over()
        return answer

    def _refusal(self, mode: str, key: str) -> Answer | None:
        """The answer of a mode that does nothing."""
        if mode == "stored_server_error" and key:
            self.shelf.stored[key] = problem(500, "stored")
        answers = {
            **INSTEAD,
            "declined": problem(422, "declined"),
            "stored_server_error": problem(500, "stored"),
            "moved": MOVED,
        }
        return answers.get(mode)

    def _accept(self, mode: str, body: Thing, key: str) -> Answer | None:
        status = {"accept_failed": "failed", "accept_reversed": "refunded"}
        if not self.shelf.quiet:
            status["accept_pending"] = "pending"
        thing, new = self.shelf.create(
            body,
            key=key,
            sent_by=self.headers.get("X-Sent-By", ""),
            attempt=self.headers.get("X-Attempt", ""),
            status=status.get(mode, "succeeded"),
            was_slow=mode == "slow",
        )
        answer = Answer(201 if new else 200, thing)
        if mode == "slow_answer":
            self.shelf.wait()
            self.shelf.over()
        if mode == "accept_then_drop":
            return self._hang_up()
        if mode == "accept_then_server_error":
            return problem(500, "out of order")
        return self._cut(answer) if mode == "truncated" else answer

    # --- look-ups -----------------------------------------------------------------------------------------

    def _look_up(self, query: dict[str, str]) -> Answer | None:
        correlation_id = query.get("correlation_id", "")
        page = query.get("page", "")
        mode = "honest" if page else self.shelf.mode(correlation_id, "look_ups")
        if not page:
            self.shelf.hidden[correlation_id] = mode in HIDDEN
        if mode == "hang":
            self.shelf.wait()
            self.shelf.over()
        if mode in {"down", "hang"}:
            return self._hang_up()
        if mode == "moved":
            return MOVED
        if mode in INSTEAD:
            return INSTEAD[mode]
        return self._page(mode, correlation_id, page)

    def _page(self, mode: str, correlation_id: str, page: str) -> Answer | None:
        if mode in {"lag", "wrong_tenant"}:
            return Answer(200, {"data": [], "next": None})
        following = _page_after(page, mode)
        if following:
            again = f"/things?correlation_id={correlation_id}&page={following}"
            return Answer(200, {"data": [], "next": again})
        things = [altered_thing(mode, thing) for thing in list(self.shelf.things.get(correlation_id, []))]
        if mode == "several":
            things += [{**thing, "id": f"{thing['id']}-again"} for thing in things]
        answer = Answer(200, {"data": things, "next": None})
        return self._cut(answer) if mode == "truncated" else answer

    def _hang_up(self) -> Answer | None:
        self.close_connection = True
        return None

    def _cut(self, answer: Answer) -> Answer | None:
        self.say(answer, cut_after=5)
        return None

    def say(self, answer: Answer, *, cut_after: int | None = None) -> None:
        """Status, headers and body in one packet."""
        raw = b"<p>?" if answer.document == "not json" else json.dumps(answer.document).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(raw)), **answer.headers}
        lines = [f"HTTP/1.1 {answer.status} X", *(f"{name}: {value}" for name, value in headers.items())]
        self.wfile.write("\r\n".join([*lines, "", ""]).encode() + raw[:cut_after])
        self.close_connection = self.close_connection or cut_after is not None


HIDDEN = frozenset({"not_found_for_forbidden", "forbidden", "wrong_tenant"})
"""Modes in which a key that may not look sees the canary as little as everything else."""


def _page_after(page: str, mode: str) -> str:
    """The next page of an answer that has nothing on this one; empty on the last."""
    if mode == "endless_pages" or page.startswith("e"):
        return f"e{int(page.removeprefix('e') or 0) + 1}"
    return "2" if mode == "paged" else ""


MOVED = Answer(308, {}, {"Location": "/elsewhere"})


class Simulator(ThreadingHTTPServer):
    """Serves on a socket that its lane keeps open."""

    daemon_threads = True

    def __init__(self, listening: socket.socket) -> None:
        super().__init__(listening.getsockname(), SimulatedHandler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.books = None
        self.token = ""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that went away is what this provider is here to see."""


def serve(listening: socket.socket, directory: Path) -> None:
    """Serve until killed."""
    SimulatedHandler.shelf = Shelf(directory)
    Simulator(listening).serve_forever()
