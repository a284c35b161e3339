"""What the conductor lets happen: one death per job, questions up to a limit, an end to growth."""

from pathlib import Path

import pytest

from dashboard.management.demo import conductor as module
from dashboard.management.demo.conductor import MOST_QUESTIONS, MOST_SLOW_TRANSFERS, Conductor
from dashboard.management.demo.jobs import Boundary, Job, Reply, Said
from dashboard.management.demo.programs import Agent, Bank
from dashboard.management.demo.state import Work
from dashboard.management.demo.stories import CYCLE, OPENING


class FakeAgent(Agent):
    """Dies where it is told to; everything else is held, or done at once."""

    def __init__(self, *, holds: bool) -> None:
        super().__init__("fake", ledger_url="http://x", api_key="k", provider_url="http://x")
        self.holds = holds
        self.asked: list[Job] = []
        self.kills = 0

    def ask(self, job: Job) -> Reply:
        self.asked.append(job)
        if job.stop_at is not None:
            return Reply(said=Said.AT_BOUNDARY, correlation_id="c1")
        held = Reply(said=Said.HELD, state="MANUAL_REVIEW", reason="no_lookup")
        return held if self.holds else Reply(said=Said.DONE, sent=True, result_ref="re_1")

    def kill(self) -> None:
        self.kills += 1


class FakeBank(Bank):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory, port=0)
        self.made = 0
        self.settled: list[str] = []

    def ensure_running(self) -> bool:
        return False

    def thing_of(self, _resource: str, _correlation_id: str) -> dict[str, str]:
        self.made += 1
        return {"id": f"re_{self.made}", "status": "pending"}

    def settle(self, refund_id: str) -> None:
        self.settled.append(refund_id)


class Stage:
    """A conductor over fakes whose new work is always due and whose open jobs are due at once."""

    def __init__(self, directory: Path, *, holds: bool = False) -> None:
        self.agent, self.bank = FakeAgent(holds=holds), FakeBank(directory)
        self.work = Work.at(directory / "work.json")
        self.work.begin_series()
        self.said: list[str] = []
        agents = {"fernhill": self.agent, "brightwater": self.agent}
        self.conductor = Conductor(agents, self.bank, self.work, self.said.append)

    def play(self, steps: int) -> None:
        for _ in range(steps):
            self.conductor.step()


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LIVELY_S", "QUIET_S", "SOON_S", "USUALLY_S"):
        monkeypatch.setattr(module, name, 0.0)
    monkeypatch.setattr(module, "PAUSE_VARIES_S", 1)


def test_each_death_happens_once_and_the_job_is_posted_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.play(len(OPENING) + 1)
    deaths = [job for job in stage.agent.asked if job.stop_at]
    assert stage.agent.kills == len(deaths) == sum(act.stop_at is not None for act in OPENING)
    again = [job.without_stop() for job in deaths]
    assert all(job in stage.agent.asked for job in again)
    assert stage.work.open == []


def test_the_desk_is_not_flooded(tmp_path: Path) -> None:
    stage = Stage(tmp_path, holds=True)
    stage.play(len(OPENING))
    posted = len(stage.agent.asked)
    stage.play(len(CYCLE))
    assert len(stage.work.open) > MOST_QUESTIONS
    new = [job for job in stage.agent.asked[posted:] if job.tool == "deploy.run"]
    assert {job.key for job in new} <= {job.key for job in stage.agent.asked[:posted]}


def test_something_stays_unknown_and_the_rest_is_settled(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.play(len(OPENING) + 3 * len(CYCLE))
    assert len(stage.work.slow_transfers) == MOST_SLOW_TRANSFERS
    assert len(stage.bank.settled) == stage.bank.made - MOST_SLOW_TRANSFERS
    assert any(act.stop_at is Boundary.BEFORE_ANSWER for act in CYCLE)


def test_a_demo_left_alone_stops_making_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ACTS", 20)
    stage = Stage(tmp_path)
    stage.play(60)
    assert stage.work.number == 20


def test_a_refused_job_is_posted_ever_more_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUIET_S", 600.0)
    refused = Reply(said=Said.REFUSED, reason="tenant-suspended")
    assert module._wait_s(refused, 0) == module.SELDOM_S
    assert module._wait_s(refused, module.QUICK_POSTS) == module.QUIET_S
