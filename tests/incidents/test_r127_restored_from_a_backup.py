"""R127: a backup is restored, and what it holds as still to be done has been done since.

Kind: a memory cut off before the facts.

Fencing does not exist yet, so this tests what holds without it: the provider's key and the mark are fixed by
tenant and operation key, so a send repeated after a restore is the same send to a provider that honours keys;
what had leave at the time of the backup is looked up and found, whether keys are honoured or not; and what
consumers were told since is told again as the same message, so that they can tell.

Missing until there is fencing: the ledger starts in no hold after a restore (FENCED); an unsent attempt does
not become UNKNOWN with `maybe_sent`, so one of a tool *without* keys would be sent a second time; approvals
and sessions of before the restore are not void; no restore watch marks intents that the backup has forgotten.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from django.db import connection

from ledger.deliveries import deliver_once
from ledger.management.local.programs import postgres_programs
from ledger.models import Delivery
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.helping import publish
from tests.incidents.scene import MAIL, PAYMENT, Body, Scene, key_for
from tests.ledger.deliveries.helping import destination
from tests.support.api import Api, WebServer
from tests.support.beside import database_url_of_tests
from tests.support.consumer import ConsumerProcess

pytestmark = [pytest.mark.crash, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
RESTORED = "restored_for_r127"


class Restored:
    """Another ledger, made of the backup; its agent holds the key it always had."""

    def __init__(self, address: str, url: str, key: str) -> None:
        self.api = Api(address, key)
        self._environment = {**os.environ, "DATABASE_URL": url}

    def manage(self, *command: str) -> None:
        ran = subprocess.run(
            [sys.executable, "manage.py", *command],
            cwd=ROOT, env=self._environment, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr

    def asked(self, key: str, tool: str, like: Body) -> Body:
        """The agent restarts: the same intent again."""
        body: Body = self.api.post("/intents", operation_key=key, tool=tool, args=like["args"]).json()
        return body


@contextmanager
def restored(backup: Path, key: str, log: Path) -> Iterator[Restored]:
    usual = database_url_of_tests()
    url = usual.replace(f"/{connection.settings_dict['NAME']}?", f"/{RESTORED}?")
    with psycopg.connect(usual, autocommit=True) as maintenance:
        maintenance.execute(f'CREATE DATABASE "{RESTORED}"')
        try:
            _program("pg_restore", "--no-owner", "--dbname", url, str(backup))
            with WebServer(database_url=url, log=log) as server:
                after = Restored(server.address, url, key)
                yield after
                after.api.close()
        finally:
            maintenance.execute(f'DROP DATABASE "{RESTORED}" WITH (FORCE)')


def backed_up(directory: Path) -> Path:
    backup = directory / "t0.dump"
    _program("pg_dump", "--format=custom", f"--file={backup}", f"--dbname={database_url_of_tests()}")
    return backup


def _program(name: str, *arguments: str) -> None:
    subprocess.run([postgres_programs() / name, *arguments], check=True, capture_output=True, timeout=120)


def test_what_was_done_after_the_backup_is_not_done_again(scene: Scene, tmp_path: Path) -> None:
    publish(scene, {PAYMENT: {"review": "always", "approvals": 2, "dispatch_timeout_s": 0.5, "settle_s": 0.1},
                    MAIL: {"dispatch_timeout_s": 0.5, "settle_s": 0.1}})  # fmt: skip
    key = key_for(scene.people.agent)
    approved = scene.recorded("k1")
    scene.approve(approved)
    sending = scene.dispatched("k2", tool=MAIL)

    backup = backed_up(tmp_path)

    first = scene.dispatched(approved)
    reference = scene.send(first)
    scene.report(first, "succeeded", result_ref=reference)
    mailed = scene.send(sending)
    scene.report(sending, "succeeded", result_ref=mailed)
    assert (scene.effects("k1"), scene.effects("k2")) == (1, 1)

    with restored(backup, key, tmp_path / "web.log") as after:
        after.manage("sweep", "--once")
        for _ in range(3):
            after.manage("reconcile", "--once")
        found = after.asked("k2", MAIL, sending)
        assert (found["directive"], found["result_ref"]) == ("done", mailed)

        told = after.asked("k1", PAYMENT, first)
        assert (told["attempt_id"], told["directive"]) == (approved["attempt_id"], "dispatch")
        asks = {"worker_id": "w-restored", "args_hash": told["args_hash"]}
        again = after.api.post(f"/attempts/{told['attempt_id']}/dispatch", **asks).json()
        assert (again["idempotency_key"], again["correlation_id"]) == (
            first["idempotency_key"],
            first["correlation_id"],
        )
        assert scene.send(again) == reference, "the provider knows this key"
        after.manage("fsck")
    assert (scene.effects("k1"), scene.effects("k2")) == (1, 1)
    nothing_else_went_wrong(scene)


def test_what_was_told_after_the_backup_is_told_again_as_the_same_message(
    scene: Scene, consumer: ConsumerProcess, tmp_path: Path
) -> None:
    destination(scene.people, consumer)
    done = scene.confirmed()
    (delivery,) = Delivery.objects.all()
    assert delivery.state == "PENDING"
    backup = backed_up(tmp_path)

    deliver_once()
    delivery.refresh_from_db()
    assert delivery.state == "ACKED"

    with restored(backup, key_for(scene.people.agent), tmp_path / "web.log") as after:
        after.manage("deliver", "--once")
        after.manage("deliver", "--once")
        after.manage("fsck")
    before, again = consumer.received()
    assert (again.webhook_id, again.body) == (before.webhook_id, before.body)
    assert before.event["data"]["attempt_id"] == done["attempt_id"]
    assert scene.effects("k1") == 1
    nothing_else_went_wrong(scene)
