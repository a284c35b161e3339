"""R72: a cursor over a sequence skips late commits.

Kind: a reader that only looks ahead.

Nothing here remembers how far it has read: what is sent is chosen by its state and its time, an export is
whole each time, and lists are read from the newest back. The one number that is read forwards, the place in
the history of an operation, is handed out under that operation's lock: in the order of the commits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from django.db import connection

from ledger import lifecycle
from ledger.deliveries import deliver_once
from ledger.lifecycle import OutcomeReport
from ledger.models import Attempt, Delivery
from ledger.models import Event as Line
from ledger.transactions import durable
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import Scene
from tests.ledger.commands.support import run
from tests.ledger.deliveries.helping import destination
from tests.support import make
from tests.support.consumer import ConsumerProcess
from tests.support.processes import wait_until

SUCCEEDED = OutcomeReport(worker_id="worker-1", outcome="succeeded", result_ref="early")
WAITS = "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted)"


@contextmanager
def written_early(write: Callable[[], object]) -> Iterator[None]:
    """What this writes has its ids and its time when the block begins, and is committed where it ends."""
    written, commit = Event(), Event()

    def wait() -> None:
        write()
        written.set()
        commit.wait(30)

    def slowly() -> None:
        try:
            durable(wait)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(slowly)
        try:
            assert written.wait(30)
            yield
        finally:
            commit.set()
        slow.result()


@contextmanager
def settled_early(scene: Scene, sent: Attempt) -> Iterator[None]:
    key = scene.people.key
    with written_early(lambda: lifecycle.record_outcome(key=key, attempt_id=sent.pk, report=SUCCEEDED)):
        yield


@pytest.mark.parametrize("later_ones", [1, 5])
def test_what_got_its_id_first_and_committed_last_is_sent(
    scene: Scene, consumer: ConsumerProcess, later_ones: int
) -> None:
    destination(scene.people, consumer)
    make.policy(scene.people.tenant)
    sent = make.dispatched(scene.people.key)
    with settled_early(scene, sent):
        for _ in range(later_ones):
            make.confirmed(scene.people.key)
        assert deliver_once().states == {"ACKED": later_ones}
    assert deliver_once().states == {"ACKED": 1}

    first = Delivery.objects.get(operation=sent.operation_id)
    assert first.pk == min(Delivery.objects.values_list("pk", flat=True))
    assert consumer.received()[-1].webhook_id == first.webhook_id
    assert len(consumer.received()) == later_ones + 1
    nothing_else_went_wrong(scene)


def test_it_is_in_the_next_export(scene: Scene, tmp_path: Path) -> None:
    make.policy(scene.people.tenant)
    sent = make.dispatched(scene.people.key)
    with settled_early(scene, sent):
        make.confirmed(scene.people.key)
        before = exported(tmp_path / "before.jsonl")
    after = exported(tmp_path / "after.jsonl")
    assert after == set(Line.objects.values_list("operation_id", "sequence"))
    late = after - before
    assert before < after
    assert {operation_id for operation_id, _ in late} == {sent.operation_id}
    nothing_else_went_wrong(scene)


def exported(file: Path) -> set[tuple[str, int]]:
    assert run("verify_history", "--export", str(file)).exit == 0
    lines = map(json.loads, file.read_text().splitlines())
    return {(line["operation"], line["sequence"]) for line in lines}


def test_it_is_on_a_later_page_of_a_list_that_is_being_read(scene: Scene) -> None:
    intent = make.intent_of("note.add", args={"text": "late"}, operation_key="late")
    with written_early(lambda: lifecycle.record_intent(key=scene.people.key, intent=intent)):
        for number in range(4):
            scene.recorded(f"k{number}")
        first = scene.api.get("/operations", limit=2).json()
    keys = [operation["operation_key"] for operation in pages(scene, "operations", "/operations", first)]
    assert keys == ["k3", "k2", "k1", "k0", "late"]
    nothing_else_went_wrong(scene)


def test_no_line_of_a_history_is_committed_before_an_earlier_one(scene: Scene) -> None:
    """Who reads it page by page meanwhile has no gap, and finds what comes later behind it."""
    leave = scene.dispatched()
    with ThreadPoolExecutor(1) as pool:
        with settled_early(scene, scene.attempt(leave)):
            other = pool.submit(scene.accepted, leave, "p-1")
            wait_until(somebody_waits, within_s=10, what="the other report waits for the first")
            before = numbers(scene, leave)
        assert other.result().status_code == 200
    after = numbers(scene, leave)
    assert after == list(range(1, len(after) + 1))
    assert before == after[: len(before)]
    assert scene.history(leave)[-1] == "attempt.provider_request"
    nothing_else_went_wrong(scene)


def numbers(scene: Scene, about: dict[str, Any]) -> list[int]:
    path = f"/operations/{about['operation_id']}/events"
    first = scene.api.get(path, limit=1).json()
    return [event["sequence"] for event in pages(scene, "events", path, first)]


def pages(scene: Scene, name: str, path: str, page: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What this page and those after it list."""
    yield from page[name]
    while page["next_cursor"] is not None:
        page = scene.api.get(path, limit=1, cursor=page["next_cursor"]).json()
        yield from page[name]


def somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(WAITS)
        return bool(cursor.fetchone()[0])
