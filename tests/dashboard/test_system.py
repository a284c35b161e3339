"""The System page: who may open it, what it says of runs of fsck, and the strip it puts on the desk."""

from __future__ import annotations

from datetime import timedelta

import structlog
from django.test import Client, TestCase

from ledger.deliveries import pause
from ledger.events import SYSTEM
from ledger.models import FsckForm, FsckRun, Pulse
from ledger.rules.deliveries import PauseReason
from ledger.transactions import database_clock, durable
from tests.dashboard.conftest import SignIn
from tests.ledger.deliveries.helping import destination
from tests.support.cast import Cast

FAULT = {
    "invariant": "heads_are_the_last_events",
    "tenant": "acme",
    "subject_id": "op_1",
    "detail": "its head is <b>wrong</b>",
}
ELSEWHERE = {**FAULT, "tenant": "globex", "subject_id": "op_of_globex"}
OF_ALL = {**FAULT, "tenant": "", "subject_id": "ledger_event.trigger"}


def ran(form: FsckForm, *faults: dict[str, str], ago: timedelta = timedelta(0)) -> FsckRun:
    """A run that is kept, as `ledger.fsck` keeps it."""
    began = database_clock() - ago
    tenants = [fault["tenant"] for fault in faults]
    return FsckRun.objects.create(
        form=form,
        started_at=began,
        ended_at=began + timedelta(seconds=1.5),
        invariants=50,
        findings_count=len(faults),
        findings=list(faults),
        counts={tenant: tenants.count(tenant) for tenant in tenants},
        snapshot="1:1:",
        system="1",
    )


def test_those_in_charge_open_it_and_find_it_in_the_navigation(people: Cast, signed_in: SignIn) -> None:
    ran(FsckForm.WHOLE)
    for person in (people.admin, people.auditor):
        answer = signed_in(person).get("/system/")
        assert answer.status_code == 200
        assert b"50 invariants hold" in answer.content
        assert b'href="/system/"' in signed_in(person).get("/review/").content


def test_nobody_else_learns_that_it_is_there(people: Cast, signed_in: SignIn) -> None:
    for person in (people.viewer, people.operator, people.approver, people.owner, people.superuser):
        client = signed_in(person)
        assert client.get("/system/").status_code == client.get("/systems/").status_code == 404
        assert b'href="/system/"' not in client.get("/review/").content


def test_who_has_not_signed_in_is_sent_to_do_so(db: None) -> None:
    answer = Client().get("/system/")
    assert (answer.status_code, answer["Location"]) == (303, "/sign-in/?next=%2Fsystem%2F")


def test_somebody_switched_off_is_signed_out(people: Cast, signed_in: SignIn) -> None:
    assert signed_in(people.inactive).get("/system/").status_code == 303


def test_nothing_is_done_by_a_press(people: Cast, signed_in: SignIn) -> None:
    assert signed_in(people.admin).post("/system/").status_code == 405


def test_a_finding_is_listed_inert_and_strips_the_desk(people: Cast, signed_in: SignIn) -> None:
    ran(FsckForm.WHOLE, FAULT, OF_ALL)
    client = signed_in(people.admin)
    body = client.get("/system/").content.decode()
    assert "Invariants are broken" in body
    assert "broken in 2 places" in body
    assert "its head is &lt;b&gt;wrong&lt;/b&gt;" in body
    assert "broken in 2 places" in client.get("/review/").content.decode()
    for unconcerned in (people.operator, people.viewer):
        assert "Invariants" not in signed_in(unconcerned).get("/review/").content.decode()


def test_findings_of_another_tenant_are_not_told(people: Cast, signed_in: SignIn) -> None:
    ran(FsckForm.WHOLE, ELSEWHERE, ELSEWHERE)
    body = signed_in(people.admin).get("/system/").content.decode()
    assert "broken elsewhere" in body
    assert "op_of_globex" not in body
    assert "globex" not in body
    assert "Invariants" not in signed_in(people.admin).get("/review/").content.decode()
    assert "op_of_globex" in signed_in(people.stranger).get("/system/").content.decode()


def test_a_clean_whole_run_answers_an_older_finding_and_no_newer_one(people: Cast, signed_in: SignIn) -> None:
    client = signed_in(people.admin)
    ran(FsckForm.TOUCHED, FAULT, ago=timedelta(minutes=2))
    ran(FsckForm.WHOLE, ago=timedelta(minutes=1))
    body = client.get("/system/").content.decode()
    assert "answered by a newer whole run" in body
    assert "Invariants are broken" not in body
    ran(FsckForm.TOUCHED, FAULT)
    assert "Invariants are broken" in client.get("/system/").content.decode()


def test_a_clean_run_of_what_was_touched_answers_no_whole_one(people: Cast, signed_in: SignIn) -> None:
    ran(FsckForm.WHOLE, FAULT, ago=timedelta(minutes=2))
    ran(FsckForm.TOUCHED)
    assert "Invariants are broken" in signed_in(people.admin).get("/system/").content.decode()


def test_what_has_not_run_is_told(people: Cast, signed_in: SignIn) -> None:
    client = signed_in(people.admin)
    body = client.get("/system/").content.decode()
    assert "The whole ledger has not been checked yet." in body
    assert body.count("never: not running") == 4
    ran(FsckForm.WHOLE, ago=timedelta(hours=27))
    ran(FsckForm.TOUCHED, ago=timedelta(minutes=20))
    body = client.get("/system/").content.decode()
    assert "The whole ledger was last checked" in body
    assert "What was written to since it was clean was last checked" in body
    now = database_clock()
    parts = ("sweep", "reconcile", "send", "deliver")
    Pulse.objects.bulk_create([Pulse(name=name, at=now) for name in parts])
    ran(FsckForm.WHOLE)
    body = client.get("/system/").content.decode()
    assert "last checked" not in body
    assert "not running" not in body


def test_a_destination_that_paused_itself_is_told_where_people_look(people: Cast, signed_in: SignIn) -> None:
    """The desk, the System page, the log; the metrics count it. One that a person paused strips no desk."""
    gone, _ = destination(people, "https://gone.example/", name="gone")
    quiet, _ = destination(people, "https://quiet.example/", name="quiet")
    now = database_clock()
    with structlog.testing.capture_logs() as logs, TestCase.captureOnCommitCallbacks(execute=True):
        durable(lambda: pause(gone, PauseReason.GONE, actor=SYSTEM, now=now))
        durable(lambda: pause(quiet, PauseReason.PERSON, actor=SYSTEM, now=now))
    assert [(log["event"], log["log_level"], log["destination"]) for log in logs] == [
        ("destination_paused", "error", gone.pk)
    ]
    assert "1 destination is paused, and no person did it" in _read(signed_in(people.viewer), "/review/")
    assert "no person did it" not in _read(signed_in(people.stranger), "/review/")
    system = _read(signed_in(people.admin), "/system/")
    assert "paused (gone) since" in system
    assert "paused (person) since" in system
    assert f"/destinations/{gone.pk}/" in system
    assert "gone.example" not in _read(signed_in(people.stranger), "/system/")
    assert "paused (gone)" not in _read(signed_in(people.stranger), "/system/")


def _read(client: Client, address: str) -> str:
    return client.get(address).content.decode()
