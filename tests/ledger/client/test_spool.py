"""Reports that could not be delivered: kept, delivered later in order, and in nobody's way."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.client import DefiniteFailure, Ledger, LedgerError, LedgerUnavailable, Refused
from ledger.client.io import BlockingIo
from ledger.client.lives import ASIDE, Lives
from ledger.client.records import Report
from tests.ledger.client.fake import ARGS, DROP, Canned, FakeLedger, directive, problem

AWAY = [DROP] * 5


@pytest.fixture
def spooling(fake: FakeLedger, tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(fake.url, "ilk_1", "w", state_dir=tmp_path / "state")
    io = ledger._transport.io
    assert isinstance(io, BlockingIo)
    io._sleep = lambda _: None
    yield ledger
    ledger.close()


def send(ledger: Ledger, reference: str = "re_1") -> Any:
    with ledger.operation("k", tool="t", args=ARGS) as op:
        op.confirm(result_ref=reference)
    return op


def delivered(fake: FakeLedger, beginning_with: int = 0) -> list[str]:
    return [path.rpartition("/")[2] for path in fake.paths()[beginning_with:]]


def aside(tmp_path: Path) -> list[dict[str, Any]]:
    path = tmp_path / "state" / ASIDE
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line]


def test_while_the_ledger_is_away_a_result_is_kept_and_the_caller_goes_on(
    spooling: Ledger, fake: FakeLedger
) -> None:
    fake.on("outcome", *AWAY)
    op = send(spooling)
    assert (op.kept, op.result_ref, op.state) == (True, "re_1", "INTENT_RECORDED")
    before = len(fake.asked)
    assert spooling.deliver_reports().delivered == 1
    assert delivered(fake, before) == ["outcome"]
    assert fake.bodies("outcome")[-1]["result_ref"] == "re_1"
    assert spooling.deliver_reports().delivered == 0


def test_what_is_left_goes_before_anything_new(spooling: Ledger, fake: FakeLedger) -> None:
    fake.on("provider-request", *AWAY, DROP)
    fake.on("outcome", *AWAY)
    with spooling.operation("k", tool="t", args=ARGS) as op:
        op.provider_request("pr_1")
        op.confirm(result_ref="re_1")
    before = len(fake.asked)
    send(spooling, "re_2")
    expected = ["provider-request", "outcome", "intents", "dispatch", "outcome"]
    assert delivered(fake, before) == expected


def test_a_report_never_overtakes_an_earlier_one_about_the_same_attempt(
    spooling: Ledger, fake: FakeLedger
) -> None:
    fake.on("provider-request", *AWAY, DROP)
    with spooling.operation("k", tool="t", args=ARGS) as op:
        op.provider_request("pr_1")
        op.confirm(result_ref="re_1")
        assert op.kept
    assert "outcome" not in delivered(fake)
    before = len(fake.asked)
    spooling.deliver_reports()
    assert delivered(fake, before) == ["provider-request", "outcome"]


def test_leave_is_never_assumed(spooling: Ledger, fake: FakeLedger) -> None:
    fake.on("dispatch", *AWAY)
    with pytest.raises(LedgerUnavailable, match="not executed"):
        send(spooling)
    assert not fake.bodies("outcome")


@pytest.mark.parametrize("status", [401, 403])
def test_what_another_key_may_deliver_stays(
    spooling: Ledger, fake: FakeLedger, tmp_path: Path, status: int
) -> None:
    fake.on("outcome", problem(status, "unauthorized"))
    with pytest.raises(Refused, match="report is kept") as raised:
        send(spooling)
    assert raised.value.executed
    assert len(fake.bodies("outcome")) == 1
    assert spooling.deliver_reports().delivered == 1
    assert aside(tmp_path) == []


@pytest.mark.parametrize(
    ("status", "slug"),
    [
        (400, "malformed-json"),
        (404, "not-found"),
        (413, "body-too-large"),
        (414, "address-too-long"),
        (422, "invalid-request"),
    ],
)
def test_what_the_ledger_will_never_take_is_put_aside(
    spooling: Ledger, fake: FakeLedger, tmp_path: Path, status: int, slug: str
) -> None:
    fake.on("outcome", *AWAY)
    send(spooling)
    fake.on("outcome", *[problem(status, slug)] * 2)
    found = spooling.deliver_reports()
    assert (found.delivered, found.refused, found.waiting) == (0, 1, 0)
    assert [(one["body"]["result_ref"], str(status) in one["why"]) for one in aside(tmp_path)] == [
        ("re_1", True)
    ]


def test_a_success_whose_details_are_refused_is_told_bare_and_kept_whole(
    spooling: Ledger, fake: FakeLedger, tmp_path: Path
) -> None:
    """Also when it could not be told at once."""
    fake.on("outcome", *AWAY)
    send(spooling, "Sent.\nOK")
    fake.on("outcome", problem(422, "invalid-request"))
    found = spooling.deliver_reports()
    assert (found.delivered, found.refused, found.waiting) == (1, 0, 0)
    bare = fake.bodies("outcome")[-1]
    assert (bare["outcome"], "result_ref" in bare) == ("succeeded", False)
    assert [one["body"]["result_ref"] for one in aside(tmp_path)] == ["Sent.\nOK"]
    assert spooling.deliver_reports().waiting == 0


HTML = {"Content-Type": "text/html"}
NOT_OF_THE_REPORT = [
    *(Canned(status, raw=b"<html>", headers=HTML) for status in (400, 401, 404, 405, 408, 413, 421, 425)),
    Canned(404, {"type": "/problems/not-found"}, {"Content-Type": "application/json"}),
    Canned(404, {"type": "https://gateway/problems/not-found"}),
    Canned(404, {"type": "about:blank"}),
    problem(400, "bad-request"),
    problem(405, "method-not-allowed"),
    problem(409, "a-word-of-a-later-ledger"),
]


@pytest.mark.parametrize("refused", NOT_OF_THE_REPORT, ids=[str(one.status) for one in NOT_OF_THE_REPORT])
def test_what_is_not_said_of_the_report_itself_costs_none(
    spooling: Ledger, fake: FakeLedger, tmp_path: Path, refused: Canned
) -> None:
    """A proxy during a redeploy, a ledger under a wrong name."""
    life = Lives(tmp_path / "state").mine()
    for attempt in ("att_1", "att_1", "att_2"):
        life.keep(Report(f"/attempts/{attempt}/outcome", {"outcome": "unknown"}))
    life.release()
    fake.on("outcome", refused)
    found = spooling.recover_at_start().reports
    assert (found.delivered, found.refused, found.waiting) == (1, 0, 2)
    assert spooling.recover_at_start().reports.delivered == 2
    assert aside(tmp_path) == []


def test_a_refusal_that_cannot_be_put_aside_ends(spooling: Ledger, fake: FakeLedger, tmp_path: Path) -> None:
    fake.on("outcome", *AWAY)
    with pytest.raises(LedgerUnavailable):
        spooling.report_outcome("att_2", "unknown")
    (tmp_path / "state" / ASIDE).mkdir()
    fake.on("outcome", *[problem(422, "invalid-request")] * 3)
    found = spooling.deliver_reports()
    assert (found.delivered, found.refused, found.waiting) == (0, 0, 1)
    with pytest.raises(Refused) as raised:
        spooling.report_outcome("att_2", "unknown")
    assert raised.value.about.kept
    assert spooling.deliver_reports().waiting == 2
    (tmp_path / "state" / ASIDE).rmdir()
    assert spooling.deliver_reports().delivered == 2


def test_what_the_ledger_chokes_on_holds_up_its_own_attempt_only(
    spooling: Ledger, fake: FakeLedger, tmp_path: Path
) -> None:
    life = Lives(tmp_path / "state").mine()
    for attempt in ("att_1", "att_1", "att_2"):
        life.keep(Report(f"/attempts/{attempt}/outcome", {"worker_id": "w", "outcome": "unknown"}))
    life.release()
    fake.on("outcome", Canned(500))
    found = spooling.recover_at_start().reports
    assert (found.delivered, found.waiting) == (1, 2)
    assert [path.split("/")[2] for path in fake.paths()[:2]] == ["att_1", "att_2"]
    assert fake.bodies("recover") == [{"worker_id": life.worker_id}]
    assert spooling.recover_at_start().reports.delivered == 2


def test_a_parked_report_is_delivered(spooling: Ledger, fake: FakeLedger, tmp_path: Path) -> None:
    fake.on("outcome", *AWAY, Canned(202, {"parked": True}))
    send(spooling)
    found = spooling.deliver_reports()
    assert (found.delivered, found.refused, found.waiting) == (1, 0, 0)
    assert fake.bodies("outcome")[-1]["operation_key"] == "k"
    assert aside(tmp_path) == []


def test_a_report_there_is_no_room_for_stays_and_holds_up_its_own_attempt_only(
    spooling: Ledger, fake: FakeLedger, tmp_path: Path
) -> None:
    life = Lives(tmp_path / "state").mine()
    for attempt in ("att_1", "att_1", "att_2"):
        life.keep(Report(f"/attempts/{attempt}/outcome", {"worker_id": "w", "outcome": "unknown"}))
    life.release()
    fake.on("outcome", problem(429, "parking-full", {"Retry-After": "60"}, retryable=True))
    found = spooling.recover_at_start().reports
    assert (found.delivered, found.refused, found.waiting) == (1, 0, 2)
    assert spooling.recover_at_start().reports.delivered == 2
    assert aside(tmp_path) == []


def test_an_early_outcome_is_on_the_disk_before_it_is_posted(spooling: Ledger, fake: FakeLedger) -> None:
    fake.on("outcomes", *AWAY)
    with pytest.raises(LedgerUnavailable) as raised:
        spooling.report_early_outcome("k", "succeeded", result_ref="re_1")
    assert raised.value.about.kept
    fake.on("outcomes", Canned(202, {"parked": True}))
    assert spooling.deliver_reports().delivered == 1
    expected = {"operation_key": "k", "outcome": "succeeded", "result_ref": "re_1"}
    assert fake.bodies("outcomes")[-1].items() >= expected.items()


UNSENDABLE = ["cannot open \udcff.pdf", "a\x00b"]


@pytest.mark.parametrize("message", UNSENDABLE, ids=["half a pair", "nul"])
def test_a_letter_that_cannot_be_sent_costs_no_report(
    spooling: Ledger, fake: FakeLedger, message: str
) -> None:
    with pytest.raises(DefiniteFailure), spooling.operation("k", tool="t", args=ARGS):
        raise DefiniteFailure("refused", message)
    said = fake.bodies("outcome")[0]["error"]["message"]
    assert (len(said), "\ufffd" in said) == (len(message), True)
    spooling.report_early_outcome("k", "succeeded", result_ref="\ud800")
    assert fake.bodies("outcomes")[0]["result_ref"] == "\ufffd"


def test_a_letter_that_cannot_be_sent_holds_up_no_next_life(
    spooling: Ledger, fake: FakeLedger, tmp_path: Path
) -> None:
    life = Lives(tmp_path / "state").mine()
    for message in ("\ud800", "well"):
        life.keep(Report("/attempts/att_1/outcome", {"outcome": "unknown", "message": message}))
    life.release()
    found = spooling.recover_at_start().reports
    assert (found.delivered, found.refused, found.waiting) == (2, 0, 0)
    assert [body["message"] for body in fake.bodies("outcome")] == ["\ufffd", "well"]
    assert fake.bodies("recover") == [{"worker_id": life.worker_id}]


def test_a_rotten_line_blocks_no_other(spooling: Ledger, fake: FakeLedger, tmp_path: Path) -> None:
    dead = Lives(tmp_path / "state").mine()
    for reference in ("re_1", "re_2", "re_3"):
        dead.keep(Report("/attempts/att_1/outcome", {"result_ref": reference}))
    path = tmp_path / "state" / f"{dead.worker_id}.life"
    path.write_bytes(path.read_bytes().replace(b"re_2", b"re_9") + b"\ntorn")
    dead.release()
    assert spooling.recover_at_start().reports.delivered == 2
    assert [body["result_ref"] for body in fake.bodies("outcome")] == ["re_1", "re_3"]
    assert ["re_9" in one["line"] or "torn" in one["line"] for one in aside(tmp_path)] == [True, True]
    assert not path.exists()


def test_a_full_disk_keeps_no_report_from_the_ledger(
    spooling: Ledger, fake: FakeLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with spooling.operation("k", tool="t", args=ARGS) as op:
        monkeypatch.setattr(os, "fsync", full)
        op.confirm(result_ref="re_1")
    assert (op.state, op.kept) == ("OUTCOME_CONFIRMED", False)


def test_a_full_disk_and_no_ledger_are_not_taken_for_delivered(
    spooling: Ledger, fake: FakeLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.on("outcome", *AWAY)
    with pytest.raises(LedgerUnavailable, match="may have been executed") as raised:
        _confirm_on_a_full_disk(spooling, monkeypatch)
    assert not raised.value.about.kept


def _confirm_on_a_full_disk(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with ledger.operation("k", tool="t", args=ARGS) as op:
        monkeypatch.setattr(os, "fsync", full)
        op.confirm(result_ref="re_1")


def test_without_its_directory_nothing_is_begun(fake: FakeLedger, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ledger = Ledger(fake.url, "ilk_1", state_dir=tmp_path / "file")
    with pytest.raises(LedgerUnavailable, match=r"state directory .* cannot be used"):
        send(ledger)
    ledger.close()
    assert not fake.bodies("dispatch")


def test_a_file_that_cannot_be_opened_hides_no_other(
    spooling: Ledger, fake: FakeLedger, tmp_path: Path
) -> None:
    Lives(tmp_path / "state", "b").mine().release()
    (tmp_path / "state" / "a.life").mkdir()
    spooling.recover_at_start()
    assert [body["worker_id"][:2] for body in fake.bodies("recover")] == ["b-"]


def test_a_rotten_line_that_cannot_be_put_aside_stays(
    spooling: Ledger, fake: FakeLedger, tmp_path: Path
) -> None:
    dead = Lives(tmp_path / "state", "dead").mine()
    path = tmp_path / "state" / f"{dead.worker_id}.life"
    path.write_bytes(b"rotten")
    dead.release()
    (tmp_path / "state" / ASIDE).mkdir()
    spooling.recover_at_start()
    assert path.read_bytes() == b"rotten"


def test_a_long_life_does_not_fill_the_disk(spooling: Ledger, tmp_path: Path) -> None:
    for _ in range(20):
        spooling.report_outcome("att_1", "unknown", error_class="unknown", message="x" * 10_000)
    path = tmp_path / "state" / f"{spooling.worker_id}.life"
    assert path.stat().st_size < 80_000


def test_others_may_not_read_it(spooling: Ledger, tmp_path: Path) -> None:
    send(spooling)
    modes = {oct(path.stat().st_mode & 0o777) for path in (tmp_path / "state").iterdir()}
    assert (oct((tmp_path / "state").stat().st_mode & 0o777), modes) == ("0o700", {"0o600"})


def test_without_a_directory_there_is_nothing_to_recover_from(blocking: Ledger) -> None:
    for call in (blocking.recover_at_start, blocking.deliver_reports):
        with pytest.raises(RuntimeError, match="LEDGER_STATE_DIR"):
            call()


def test_the_environment_names_the_directory(
    fake: FakeLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEDGER_URL", fake.url)
    monkeypatch.setenv("LEDGER_API_KEY", "ilk_1")
    with pytest.raises(ValueError, match="LEDGER_STATE_DIR"):
        Ledger.from_env(recover=True)
    Lives(tmp_path, "dead").mine().release()
    monkeypatch.setenv("LEDGER_STATE_DIR", str(tmp_path))
    ledger = Ledger.from_env(recover=True)
    assert [body["worker_id"][:5] for body in fake.bodies("recover")] == ["dead-"]
    ledger.close()


def test_trouble_with_the_dead_is_not_in_the_way_of_the_living(
    spooling: Ledger, fake: FakeLedger, tmp_path: Path
) -> None:
    Lives(tmp_path / "state", "dead").mine().release()
    fake.on("recover", problem(403, "scope-refused"))
    assert send(spooling).result_ref == "re_1"
    assert send(spooling).result_ref == "re_1"
    assert len(fake.bodies("recover")) == 2


def test_a_held_operation_still_delivers_what_was_left(spooling: Ledger, fake: FakeLedger) -> None:
    fake.on("outcome", *AWAY)
    send(spooling)
    fake.on("intents", directive("hold", 202))
    with pytest.raises(LedgerError):
        send(spooling)
    assert delivered(fake)[-2:] == ["outcome", "intents"]
