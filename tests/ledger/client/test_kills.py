"""Real processes, really killed: what they leave behind is found by the next one, on any machine state."""

import multiprocessing
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.client import Ledger
from ledger.client.lives import Lives
from ledger.client.records import Report
from ledger.client.testing import Boundary, CountingProvider, Ended, run_agent
from tests.ledger.client.fake import ARGS, DROP, FakeLedger, leave

PROGRAM = Path(__file__).with_name("tool_program.py")
TWINS = ["blocking", "awaiting"]

pytestmark = pytest.mark.crash


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[CountingProvider]:
    with CountingProvider(tmp_path / "provider") as counting:
        yield counting


class Agent:
    """The program, its environment, and where it keeps what outlives it."""

    def __init__(self, fake: FakeLedger, provider: CountingProvider, state_dir: Path, twin: str) -> None:
        self.state_dir = state_dir
        self._provider = provider
        self._twin = twin
        self._env = {
            "LEDGER_URL": fake.url,
            "LEDGER_API_KEY": "ilk_1",
            "LEDGER_STATE_DIR": str(state_dir),
            "LEDGER_WORKER_ID": "w",
        }

    def run(self, *, kill_at: Boundary | None = None) -> Ended:
        return run_agent(PROGRAM, self._twin, kill_at=kill_at, provider=self._provider, env=self._env)


@pytest.fixture(params=TWINS)
def agent(
    request: pytest.FixtureRequest, fake: FakeLedger, provider: CountingProvider, tmp_path: Path
) -> Agent:
    return Agent(fake, provider, tmp_path / "state", request.param)


KILLS = [
    (Boundary.BEFORE_INTENT, [], 0),
    (Boundary.AFTER_INTENT, ["intents"], 0),
    (Boundary.AFTER_LEAVE, ["intents", "dispatch"], 0),
    (Boundary.WHILE_SENDING, ["intents", "dispatch"], 1),
    (Boundary.BEFORE_REPORT, ["intents", "dispatch"], 1),
    (Boundary.AFTER_REPORT, ["intents", "dispatch", "outcome"], 1),
]


@pytest.mark.parametrize(("boundary", "asked", "effects"), KILLS, ids=[str(row[0]) for row in KILLS])
def test_an_agent_dies_exactly_there(
    agent: Agent,
    fake: FakeLedger,
    provider: CountingProvider,
    boundary: Boundary,
    asked: list[str],
    effects: int,
) -> None:
    ended = agent.run(kill_at=boundary)
    assert ended.killed, ended.stderr
    assert [path.rpartition("/")[2] for path in fake.paths()] == asked
    assert provider.effects() == effects


def test_the_next_life_tells_that_the_last_one_is_dead(agent: Agent, fake: FakeLedger) -> None:
    assert agent.run(kill_at=Boundary.AFTER_LEAVE).killed
    worker_id = fake.bodies("dispatch")[0]["worker_id"]
    assert worker_id.startswith("w-")
    assert agent.run().exit_code == 0
    assert fake.paths()[2:4] == ["/recover", "/intents"]
    assert fake.bodies("recover") == [{"worker_id": worker_id}]
    assert fake.bodies("dispatch")[1]["worker_id"] != worker_id
    assert agent.run().exit_code == 0
    assert len(fake.bodies("recover")) == 2  # the second life's; the first is told once
    assert len(fake.bodies("outcome")) == 2  # what a life delivered itself is not delivered again


def test_a_result_survives_the_death_of_who_knew_it(agent: Agent, fake: FakeLedger) -> None:
    assert agent.run(kill_at=Boundary.BEFORE_REPORT).killed
    assert not fake.bodies("outcome")
    agent.run()
    assert fake.paths()[2:4] == ["/attempts/att_2/outcome", "/recover"]  # facts before what is not known
    dead = fake.bodies("dispatch")[0]["worker_id"]
    said = {"worker_id": dead, "outcome": "succeeded", "result_ref": "eff_1"}
    assert fake.bodies("outcome")[0].items() >= said.items()


def test_a_ledger_that_is_away_costs_no_result(agent: Agent, fake: FakeLedger) -> None:
    fake.on("outcome", *[DROP] * 5)
    assert agent.run().stdout.split() == ["eff_1", "True"]
    agent.run()
    assert fake.paths().index("/recover") > fake.paths().index("/attempts/att_2/outcome")
    references = [body["result_ref"] for body in fake.bodies("outcome")]
    assert references == ["eff_1"] * 6 + ["eff_2"]


def _deliver(url: str, directory: str, ready: "multiprocessing.synchronize.Barrier") -> None:
    ledger = Ledger(url, "ilk_1", state_dir=directory)
    ready.wait(30)
    ledger.recover_at_start()
    ledger.close()


def test_processes_that_start_together_do_each_thing_once(fake: FakeLedger, tmp_path: Path) -> None:
    for number in range(6):
        life = Lives(tmp_path, f"dead{number}").mine()
        life.keep(Report(f"/attempts/att_{number}/outcome", {"outcome": "unknown"}))
        life.release()
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Barrier(3)
    processes = [spawn.Process(target=_deliver, args=(fake.url, str(tmp_path), ready)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert sorted(fake.paths()) == sorted(
        [f"/attempts/att_{number}/outcome" for number in range(6)] + ["/recover"] * 6
    )
    assert list(tmp_path.glob("dead*")) == []


def test_a_forked_child_is_a_life_of_its_own_and_keeps_no_dead_parent_alive(tmp_path: Path) -> None:
    said, say = os.pipe()
    go_on, let_go_on = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(said)
        parent = Lives(tmp_path, "w")
        first = parent.mine().worker_id
        grandchild = os.fork()
        if grandchild == 0:
            os.close(let_go_on)
            os.write(say, f"{first} {parent.mine().worker_id}\n".encode())
            os.read(go_on, 1)  # outlives its parent, until the test has looked
        os._exit(0)
    os.close(say)
    os.waitpid(child, 0)
    try:
        first, second = os.read(said, 1000).decode().split()
        dead = list(Lives(tmp_path).dead())
    finally:
        for handle in (let_go_on, go_on, said):
            os.close(handle)
    for life in dead:
        life.release()
    assert [life.worker_id for life in dead] == [first]
    assert first != second


def test_one_process_is_one_life_whoever_asks(fake: FakeLedger, tmp_path: Path) -> None:
    first, second = (Ledger(fake.url, "ilk_1", state_dir=tmp_path) for _ in range(2))
    assert first.worker_id == second.worker_id
    assert len(list(tmp_path.iterdir())) == 1


def test_a_living_process_is_not_declared_dead(fake: FakeLedger, tmp_path: Path) -> None:
    living = Lives(tmp_path, "living").mine()
    ledger = Ledger(fake.url, "ilk_1", state_dir=tmp_path)
    fake.on("dispatch", leave())
    with ledger.operation("k", tool="t", args=ARGS) as op:
        op.confirm(result_ref="re_1")
    ledger.close()
    assert not fake.bodies("recover")
    living.release()
