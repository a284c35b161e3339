"""Agents that die for real beside a real ledger: what the next life finds, and what the page promises."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.client import Ledger
from ledger.client.testing import Boundary, CountingProvider, run_agent
from ledger.models import Attempt, Event
from ledger.rules.vocabulary import EventKind
from tests.ledger.ingest.cast import Cast
from tests.support.api import WebServer

PROGRAM = Path(__file__).parents[1] / "client" / "tool_program.py"
PAGE = Path(__file__).parents[3] / "docs" / "client.md"

pytestmark = pytest.mark.crash


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[CountingProvider]:
    with CountingProvider(tmp_path / "provider") as counting:
        yield counting


@pytest.fixture
def environment(server: WebServer, cast: Cast, tmp_path: Path) -> dict[str, str]:
    return {
        "LEDGER_URL": server.address,
        "LEDGER_API_KEY": cast.key()[0],
        "LEDGER_STATE_DIR": str(tmp_path / "state"),
    }


@pytest.fixture
def next_life(environment: dict[str, str]) -> Iterator[Ledger]:
    ledger = Ledger(
        environment["LEDGER_URL"],
        environment["LEDGER_API_KEY"],
        state_dir=environment["LEDGER_STATE_DIR"],
    )
    yield ledger
    ledger.close()


AFTERWARDS = [
    (Boundary.AFTER_INTENT, "INTENT_RECORDED", 0, 0, []),
    (Boundary.AFTER_LEAVE, "UNKNOWN", 0, 0, ["UNKNOWN"]),
    (Boundary.WHILE_SENDING, "UNKNOWN", 1, 0, ["UNKNOWN"]),
    (Boundary.BEFORE_REPORT, "OUTCOME_CONFIRMED", 1, 1, []),
    (Boundary.AFTER_REPORT, "OUTCOME_CONFIRMED", 1, 1, []),
]


@pytest.mark.parametrize("twin", ["blocking", "awaiting"])
@pytest.mark.parametrize(
    ("boundary", "state", "effects", "delivered", "found"), AFTERWARDS, ids=[row[0] for row in AFTERWARDS]
)
def test_what_the_next_life_finds(
    cast: Cast,
    provider: CountingProvider,
    environment: dict[str, str],
    next_life: Ledger,
    twin: str,
    boundary: Boundary,
    state: str,
    effects: int,
    delivered: int,
    found: list[str],
) -> None:
    assert run_agent(PROGRAM, twin, kill_at=boundary, provider=provider, env=environment).killed
    for again in range(2):  # the second time there is nothing left to do
        recovered = next_life.recover_at_start()
        assert recovered.reports.delivered == (0 if again else delivered)
        assert [attempt["state"] for attempt in recovered.attempts] == ([] if again else found)
    assert Attempt.objects.get(tenant=cast.tenant).state == state
    assert provider.effects() == effects
    reports = Event.objects.filter(tenant=cast.tenant, kind=EventKind.OUTCOME_REPORTED)
    assert reports.count() == delivered  # one that was delivered twice is stored once


def test_a_kept_lease_knows_its_length_from_the_ledger(server: WebServer, cast: Cast) -> None:
    ledger = Ledger(server.address, cast.key()[0])
    with ledger.operation("k", tool="email.send", args={}).keeping_lease() as op:
        assert op._lease is not None
        assert 58 < (op._lease.leave.lease_s or 0) <= 61
        assert 11 < op._lease.every_s <= 12
        op.confirm(result_ref="re_1")
    ledger.close()


def block_called(name: str) -> str:
    """The block of Python on the page that begins with this file's name."""
    found = re.search(rf"```python\n# {name}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None, name
    return found[1]


@pytest.mark.parametrize("boundary", list(Boundary))
def test_the_pages_example_does_what_it_says(
    cast: Cast,
    environment: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    boundary: Boundary,
) -> None:
    (tmp_path / "agent.py").write_text(block_called("agent.py"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("LEDGER_URL", "LEDGER_API_KEY"):
        monkeypatch.setenv(name, environment[name])
    page: dict[str, Any] = {}
    exec(compile(block_called("test_agent.py"), "docs/client.md", "exec"), page)  # noqa: S102  (our own page)
    documented: Callable[..., None] = page["test_dying_anywhere_opens_one_ticket_at_most"]
    documented(tmp_path, boundary)
    assert Attempt.objects.filter(tenant=cast.tenant).count() == 1
