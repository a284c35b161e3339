"""A right consumer passes; each wrong one is told its fault."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ledger.client.conformance import ConsumerAway, Fault, FileEffects, Report, UrlEffects, check_consumer
from ledger.client.conformance.findings import Check
from tests.ledger.client.consumer.events import SECRET_TEXT
from tests.support.processes import free_port
from tests.support.serving import ROOT


def command(directory: Path, port: int, kind: str) -> str:
    program = f"{sys.executable} -m tests.ledger.client.conformance.consumer"
    return f"{program} {directory} {port} {SECRET_TEXT} {kind}"


def report_of(kind: str, directory: Path, *, kills: int = 0) -> Report:
    port = free_port()
    url = f"http://127.0.0.1:{port}/hooks"
    report = check_consumer(
        url,
        SECRET_TEXT,
        start=command(directory, port, kind),
        effects=UrlEffects(url, timeout_s=60),
        kills=kills,
        timeout_s=60,
    )
    print(report.table())
    return report


def test_a_right_consumer_passes(tmp_path: Path) -> None:
    report = report_of("right", tmp_path, kills=4)
    assert not report.faults, report.table()
    assert report.killed == 5
    assert "No fault was found." in report.table()
    assert "note" not in report.table()


WRONG: dict[str, set[Fault]] = {
    "no_signature": {Fault.ACKNOWLEDGED_FORGERY, Fault.ACKNOWLEDGED_OLD, Fault.APPLIED_FORGERY},
    "rewrites_json": {Fault.REFUSED_GOOD, Fault.REWRITES_JSON, Fault.REFUSED_UNKNOWN},
    "no_duplicates": {Fault.APPLIED_TWICE, Fault.APPLIED_OUTDATED, Fault.APPLIED_UNKNOWN},
    "applies_outdated": {Fault.APPLIED_OUTDATED},
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_one_is_told_its_faults(kind: str, tmp_path: Path) -> None:
    assert report_of(kind, tmp_path).faults == WRONG[kind]


WRONG_AT_A_CRASH = {
    "marks_first": Fault.LOST,
    "answers_early": Fault.ANSWERED_EARLY,
    "does_not_return": Fault.DID_NOT_RETURN,
}


@pytest.mark.parametrize("kind", WRONG_AT_A_CRASH)
def test_one_that_is_wrong_at_a_crash_alone(kind: str, tmp_path: Path) -> None:
    report = report_of(kind, tmp_path, kills=3)
    assert WRONG_AT_A_CRASH[kind] in report.faults
    wrong_rows = [check.name for check in report.checks if check.faults]
    assert kind == "answers_early" or all(name.startswith("killed") for name in wrong_rows), report.table()
    early = any("not there yet" in note for check in report.checks for note in check.notes)
    assert early == (kind == "answers_early")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ledger.client.conformance", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


def test_the_command_prints_a_table_and_exits_1_where_there_are_faults(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/hooks"
    start = command(tmp_path, port, "applies_outdated")
    ended = run(
        "--url", url, "--secret", SECRET_TEXT, "--effects-url", url, "--start", start, "--kills", "0"
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (1, "")
    assert "an old settlement after a newer one" in ended.stdout
    assert "it applied an older settlement after a newer one" in ended.stdout
    assert "Nothing was killed" in ended.stdout


def test_where_nothing_can_be_checked_it_says_why_and_exits_2() -> None:
    url = f"http://127.0.0.1:{free_port()}/"
    for arguments, why in (
        (("--url", url, "--secret", SECRET_TEXT), "nothing answers"),
        (("--url", url, "--secret", "whsec_!!"), "a secret is"),
        (("--url", url, "--secret", SECRET_TEXT, "--start", "no-such-program"), "cannot be started"),
    ):
        ended = run(*arguments)
        assert ended.returncode == 2
        assert why in ended.stderr


def test_a_start_that_ends_at_once_shows_what_it_said() -> None:
    url = f"http://127.0.0.1:{free_port()}/"
    with pytest.raises(ConsumerAway, match="no books here"):
        check_consumer(url, SECRET_TEXT, start=f"{sys.executable} -c \"print('no books here')\"")


def test_a_file_of_effects_is_counted_by_its_first_words(tmp_path: Path) -> None:
    file = tmp_path / "effects"
    assert FileEffects(file).applied() == {}
    file.write_text("msg_1 at noon\n\nmsg_2\nmsg_1\n")
    check = Check("a file")
    for webhook_id, times in (("msg_1", 1), ("msg_2", 1), ("msg_3", 1), ("msg_4", 0)):
        check.expect(webhook_id, times)
    check.judge(FileEffects(file).applied())
    assert {fault: details[0].split(":")[0] for fault, details in check.faults.items()} == {
        Fault.APPLIED_TWICE: "msg_1",
        Fault.NOT_APPLIED: "msg_3",
    }
