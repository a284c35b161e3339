"""`Prefer: wait` over real HTTP: released by a change, bounded, for a share of the threads only."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from ledger.client import AsyncLedger, Ledger
from ledger.ingest.waiting import MOST_WAIT_S, wished_wait_s
from ledger.models import ApiKey, Attempt, ReviewItem
from ledger.transactions import database_clock
from review import decisions
from review.roles import Role
from tests.ledger.ingest.cast import Cast
from tests.ledger.ingest.contract import Contract
from tests.ledger.ingest.steps import ARGS, fail_without_effect, new_attempt, post_intent, sent_attempt
from tests.support.api import Api, WebServer, slug_of
from tests.support.cast import person
from tests.support.processes import wait_until

THREADS = 8
PLACES = 2

Json = dict[str, Any]
Waiters = Callable[[Json], "list[Future[httpx.Response]]"]


@pytest.mark.parametrize(
    ("prefer", "wait_s"),
    [
        ("", None),
        ("wait=5", 5),
        ("WAIT = 5", 5),
        ('wait="7"', 7),
        ("respond-async, wait=5", 5),
        ("wait=5; by=me, wait=9", 5),
        ("wait=0", 0),
        ("wait=31", MOST_WAIT_S),
        ("wait=999999999", MOST_WAIT_S),
        ("wait=9999999999", None),
        ("wait=-1", None),
        ("wait=1.5", None),
        ("wait=\u0665", None),
        ("wait", None),
        ("await=5", None),
        ('note="a, wait=5"', None),
        ('note="a \\", wait=5", wait=3', 3),
    ],
)
def test_what_a_preference_asks_for(prefer: str, wait_s: int | None) -> None:
    assert wished_wait_s(prefer) == wait_s


@given(st.text(alphabet='wait="\\,; 0123456789x', max_size=200))
def test_no_header_asks_for_more_than_the_most(prefer: str) -> None:
    wait_s = wished_wait_s(prefer)
    assert wait_s is None or 0 <= wait_s <= MOST_WAIT_S


@pytest.fixture(scope="module")
def roomy(own_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """A web server of this module's own, whose places for waiting nobody else takes."""
    log = tmp_path_factory.mktemp("web") / "web.log"
    with WebServer(database_url=own_database_url, log=log, threads=THREADS) as running:
        yield running


@pytest.fixture
def key(cast: Cast) -> tuple[str, ApiKey]:
    return cast.key()


@pytest.fixture
def api(roomy: WebServer, key: tuple[str, ApiKey], contract: Contract) -> Iterator[Api]:
    client = Api(roomy.address, key[0], look_at=contract.check)
    yield client
    client.close()


@pytest.fixture
def waiters(api: Api) -> Iterator[Waiters]:
    """As many as there are places, each in one of them: whoever asks now finds none free."""
    with ThreadPoolExecutor(PLACES) as threads:

        def begin(attempt: Json) -> list[Future[httpx.Response]]:
            begun = [threads.submit(placed, api, attempt) for _ in range(PLACES)]
            wait_until(lambda: not is_placed(ask(api, attempt, 0)), within_s=60, what="every place is taken")
            return begun

        yield begin


def ask(api: Api, attempt: Json, wait_s: int) -> httpx.Response:
    return api.http.get(
        f"/operations/{attempt['operation_id']}", headers={"Prefer": f"wait={wait_s}"}, timeout=60
    )


def is_placed(answer: httpx.Response) -> bool:
    return "Preference-Applied" in answer.headers or answer.status_code != 200


def placed(api: Api, attempt: Json, wait_s: int = MOST_WAIT_S) -> httpx.Response:
    """Ask until there was a place: another one's short wait may hold it."""
    while not is_placed(answer := ask(api, attempt, wait_s)):
        assert answer.headers["Retry-After"] == "2"
    return answer


def directives(waiting: list[Future[httpx.Response]]) -> list[str]:
    return [answer.result(60).json()["directive"] for answer in waiting]


def test_a_decision_ends_the_wait(api: Api, cast: Cast, waiters: Waiters) -> None:
    attempt = new_attempt(api, tool="pay.held")
    assert attempt["directive"] == "hold"
    waiting = waiters(attempt)
    item = ReviewItem.objects.get(attempt_id=attempt["attempt_id"])
    for number in range(2):
        approver = person(f"{cast.tenant.slug}-approver-{number}", cast.tenant, Role.APPROVER)
        decisions.approve(approver, item.pk, why="go")
    assert directives(waiting) == ["dispatch"] * PLACES
    assert {answer.result().headers["Preference-Applied"] for answer in waiting} == {"wait=30"}


def test_both_clients_hear_of_a_decision(
    roomy: WebServer, api: Api, cast: Cast, key: tuple[str, ApiKey]
) -> None:
    """One intent, posted by two workers: both wait, a person cancels it, both hear that it is over."""
    attempt = new_attempt(api, tool="pay.held")
    said: dict[str, Any] = {"tool": "pay.held", "args": ARGS}

    def blocking() -> str:
        ledger = Ledger(roomy.address, key[0])
        try:
            return ledger.operation("invoice:1", **said).wait(60)
        finally:
            ledger.close()

    async def awaiting() -> str:
        ledger = AsyncLedger(roomy.address, key[0])
        try:
            return await ledger.operation("invoice:1", **said).wait(60)
        finally:
            await ledger.close()

    with ThreadPoolExecutor(2) as threads:
        waiting = [threads.submit(blocking), threads.submit(lambda: asyncio.run(awaiting()))]
        wait_until(lambda: not is_placed(ask(api, attempt, 0)), within_s=60, what="both wait")
        api.post(f"/operations/{attempt['operation_id']}/cancel", reason="no")
        assert [directive.result(60) for directive in waiting] == ["failed", "failed"]


def test_what_time_alone_changes_ends_the_wait(api: Api) -> None:
    attempt = sent_attempt(api)
    fail_without_effect(api, attempt, retryable=True)
    stored = Attempt.objects.filter(pk=attempt["attempt_id"])
    stored.update(send_again_at=database_clock() + timedelta(seconds=2))
    assert ask(api, attempt, 0).json()["directive"] == "in_flight"
    assert placed(api, attempt).json()["directive"] == "dispatch"


def test_a_wait_ends_with_its_time(api: Api) -> None:
    attempt, began = sent_attempt(api), time.monotonic()
    answer = placed(api, attempt, 1)
    assert time.monotonic() - began >= 1
    assert (answer.json()["directive"], answer.headers["Preference-Applied"]) == ("in_flight", "wait=1")


def test_nobody_waits_for_what_is_theirs_to_do(api: Api) -> None:
    """Answered at once, whatever time was asked for; which is at most 30 s."""
    answer = ask(api, new_attempt(api), 86_400)
    assert answer.json()["directive"] == "dispatch"
    assert answer.headers["Preference-Applied"] == "wait=30"
    assert "Preference-Applied" not in api.get(f"/operations/{answer.json()['operation_id']}").headers


def test_many_who_wait_keep_no_other_from_being_answered(api: Api, waiters: Waiters) -> None:
    attempt = sent_attempt(api)
    waiting = waiters(attempt)
    with ThreadPoolExecutor(16) as threads:
        refused = list(threads.map(lambda _: ask(api, attempt, MOST_WAIT_S), range(32)))
    assert {is_placed(answer) for answer in refused} == {False}
    assert {answer.headers["Retry-After"] for answer in refused} == {"2"}
    assert {answer.json()["directive"] for answer in refused} == {"in_flight"}
    for number in range(8):
        assert post_intent(api, operation_key=f"other:{number}").status_code == 201
    assert not any(answer.done() for answer in waiting)
    api.post(
        f"/attempts/{attempt['attempt_id']}/outcome", worker_id="w1", outcome="succeeded", result_ref="r"
    )
    assert directives(waiting) == ["done"] * PLACES


def test_whoever_waits_is_in_no_transaction(api: Api, waiters: Waiters) -> None:
    attempt = sent_attempt(api)
    waiting = waiters(attempt)
    looks = [in_transaction() for _ in range(20)]
    assert sum(looks) == 0
    assert not any(answer.done() for answer in waiting)
    api.post(f"/operations/{attempt['operation_id']}/cancel", reason="no")
    api.post(
        f"/attempts/{attempt['attempt_id']}/outcome", worker_id="w1", outcome="succeeded", result_ref="r"
    )
    directives(waiting)


def in_transaction() -> int:
    """How many other sessions of this database rest inside a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'"
        )
        found: int = cursor.fetchone()[0]
        return found


def test_a_key_taken_back_meanwhile_reads_nothing(
    api: Api, key: tuple[str, ApiKey], waiters: Waiters
) -> None:
    attempt = sent_attempt(api)
    waiting = waiters(attempt)
    ApiKey.objects.filter(pk=key[1].pk).update(revoked_at=database_clock())
    api.post(f"/attempts/{attempt['attempt_id']}/outcome", worker_id="w1", outcome="unknown")
    assert {(answer.result(60).status_code, slug_of(answer.result())) for answer in waiting} == {
        (403, "key-revoked")
    }


def test_what_is_not_there_is_not_waited_for(api: Api) -> None:
    for operation_id in ("op_" + "7" * 26, "nothing", "op_%00"):
        answer = ask(api, {"operation_id": operation_id}, MOST_WAIT_S)
        assert answer.status_code in (400, 404)
