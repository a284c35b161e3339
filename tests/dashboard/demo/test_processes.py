"""The demo's processes: the provider keeps its books and its port, and nobody outlives who started them."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import psutil
import pytest

from dashboard.management.demo import wire
from dashboard.management.demo.jobs import Reply, Said
from dashboard.management.demo.programs import CHECKOUT, Agent, Bank, ProgramFailed, start_bank, start_shop
from dashboard.management.demo.state import DemoRunsAlready, Work, only_demo
from dashboard.management.demo.stories import BRIGHTWATER, FERNHILL, bank_transfer, refund, reminder
from dashboard.management.demo.told import news
from ledger.rules.states import Outcome
from ledger.rules.webhooks import Told, cloud_event, headers, secret_text
from tests.support.processes import still_running, wait_until


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Bank]:
    running = start_bank(tmp_path / "provider", wanted_port=0)
    yield running
    running.kill()


def test_the_agent_needs_no_django() -> None:
    check = "import sys, dashboard.management.demo.agent; sys.exit('django' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], cwd=CHECKOUT, check=False).returncode == 0


def test_a_bank_transfer_waits_until_it_is_settled(bank: Bank) -> None:
    body = {**bank_transfer(FERNHILL, "K7", 1).args, "metadata": {"correlation_id": "c1"}}
    wire.ask(bank.url, "POST", "/refunds", body)
    thing = bank.thing_of("refunds", "c1")
    assert thing is not None
    assert thing["status"] == "pending"
    bank.settle(thing["id"])
    settled = bank.thing_of("refunds", "c1")
    assert settled is not None
    assert settled["status"] == "succeeded"


def test_the_provider_comes_back_with_its_books_at_its_port(bank: Bank) -> None:
    wire.ask(bank.url, "POST", "/refunds", dict(refund(FERNHILL, "K7", 1).args))
    assert not bank.ensure_running()
    url = bank.url
    bank.kill()
    assert bank.ensure_running()
    assert bank.url == url
    assert wire.ask(bank.url, "GET", "/effects")[1]["total"] == 1


def test_a_port_taken_by_somebody_else_is_left_to_them(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        bank = start_bank(tmp_path / "provider", wanted_port=taken.getsockname()[1])
        try:
            assert bank.port != taken.getsockname()[1]
        finally:
            bank.kill()


STARTER = """
import sys, time
from pathlib import Path
from dashboard.management.demo.programs import Agent, start_bank
bank = start_bank(Path(sys.argv[1]), wanted_port=0)
agent = Agent("a", ledger_url="http://127.0.0.1:1", api_key="k", provider_url=bank.url)
agent.start()
print("started", flush=True)
time.sleep(60)
"""


def test_nobody_outlives_a_starter_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTER, str(tmp_path)]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"started\n"
        children = psutil.Process(starter.pid).children()
        assert len(children) == 2
        starter.kill()
    assert still_running(children, within_s=5) == []


def test_a_worker_that_dies_is_noticed_and_replaced() -> None:
    agent = Agent("a", ledger_url="http://127.0.0.1:1", api_key="k", provider_url="http://127.0.0.1:1")
    with pytest.raises(ProgramFailed):
        agent.hear()
    agent.start()
    try:
        agent.tell({"no": "job"})  # it ends with a KeyError
        with pytest.raises(ProgramFailed):
            agent.hear()
        wait_until(lambda: not agent.is_running, within_s=5, what="the worker's end")
    finally:
        agent.kill()


def test_only_one_demo_at_a_time(tmp_path: Path) -> None:
    with only_demo(tmp_path / "demo"), pytest.raises(DemoRunsAlready), only_demo(tmp_path / "demo"):
        pass
    with only_demo(tmp_path / "demo"):
        pass


def test_work_is_taken_up_where_it_was_left(tmp_path: Path) -> None:
    work = Work.at(tmp_path / "work.json")
    work.begin_series()
    assert [work.next_number(), work.next_number()] == [1, 2]
    work.open.append(reminder(BRIGHTWATER, work.series, 2))
    work.slow_transfers.append("re_000001")
    work.save()
    again = Work.at(tmp_path / "work.json")
    assert (again.series, again.next_number()) == (work.series, 3)
    assert (again.open, again.slow_transfers) == (work.open, ["re_000001"])


def test_the_log_speaks_only_of_what_changed() -> None:
    job = refund(FERNHILL, "K7", 1)
    unknown = Reply(said=Said.WAITS, state="UNKNOWN")
    assert "the ledger asks the provider" in news(job, unknown, before="DISPATCHED")
    assert news(job, unknown, before="UNKNOWN") == ""
    done = Reply(said=Said.DONE, result_ref="re_1")
    assert "found there by a look-up (re_1); not sent again" in news(job, done, before="UNKNOWN")
    assert "approved; sent once" in news(
        job, Reply(said=Said.DONE, result_ref="re_1", sent=True), before="MANUAL_REVIEW"
    )


def test_the_shop_takes_what_the_ledger_signed_but_for_orders_that_are_counted(tmp_path: Path) -> None:
    shop = start_shop(tmp_path / "shop", wanted_port=0)
    secret = b"s" * 32
    try:
        shop.use(secret_text(secret))
        wait_until(lambda: told(shop.url, "refund:K7-4821", secret) == 200, within_s=10, what="open")
        assert told(shop.url, "refund:K7-4825", secret) == 503
        assert told(shop.url, "refund:K7-4826", b"t" * 32) == 400
    finally:
        shop.kill()


def told(url: str, operation_key: str, secret: bytes) -> int:
    """How it answers a result of this operation."""
    now = datetime.now(UTC)
    body = cloud_event(
        Told(
            webhook_id=f"msg_{operation_key}",
            tenant_slug=FERNHILL,
            operation_id=operation_key,
            operation_key=operation_key,
            attempt_id="att_1",
            tool="refund.create",
            outcome=Outcome.CONFIRMED,
            number=1,
            result_ref="re_1",
            settled_at=now,
        )
    )
    signed = headers(f"msg_{operation_key}", at=now, body=body, secrets=[secret])
    return httpx.post(url, headers=signed, content=body, trust_env=False).status_code
