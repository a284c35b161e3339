"""R82: Duplicates slip through because dedup looks at one table only.

Kind: one fact is one row under one unique constraint, while it waits, when it is applied and ever after.
"""

# ruff: noqa: F401, F811 - fixtures

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from ledger.models import Event, ParkedFact, Settlement
from ledger.queries.invariants import findings
from tests.ledger.ingest.cast import Cast
from tests.ledger.ingest.conftest import (
    api,
    cast,
    contract,
    own_database,
    own_database_url,
    same_database,
    server,
)
from tests.ledger.ingest.steps import post_intent, sent_attempt
from tests.support.api import Api

LOST = "att_" + "7" * 26
SAID = {"worker_id": "hook", "outcome": "succeeded", "result_ref": "p-1"}
Tell = Callable[[Api], httpx.Response]


def by_key(api: Api) -> httpx.Response:
    return api.post("/outcomes", operation_key="k1", **SAID)


def by_id(api: Api) -> httpx.Response:
    return api.post(f"/attempts/{LOST}/outcome", operation_key="k1", **SAID)


def is_replay(answer: httpx.Response) -> bool:
    return bool(answer.headers.get("idempotent-replayed") == "true")


@pytest.mark.parametrize("tell", [by_key, by_id])
def test_e_1_is_a_duplicate_in_every_phase(api: Api, cast: Cast, tell: Tell) -> None:
    waiting = [tell(api), tell(api)]
    post_intent(api, operation_key="k1")
    applied = [tell(api), tell(api)]
    assert [is_replay(answer) for answer in (*waiting, *applied)] == [False, True, True, True]
    assert ParkedFact.objects.get(tenant=cast.tenant).times_told == 4
    assert Event.objects.filter(tenant=cast.tenant, kind="attempt.outcome_reported").count() == 1


def test_told_in_two_ways_it_counts_once(api: Api, cast: Cast) -> None:
    by_key(api)
    by_id(api)
    sent = post_intent(api, operation_key="k1").json()
    api.post(f"/attempts/{sent['attempt_id']}/outcome", **SAID)
    assert Event.objects.filter(tenant=cast.tenant, kind="attempt.outcome_reported").count() == 1


def test_many_at_once_settle_once(api: Api, cast: Cast) -> None:
    sent_attempt(api, operation_key="k1")
    with ThreadPoolExecutor(4) as pool:
        answers = [answer.result() for answer in [pool.submit(by_key, api) for _ in range(8)]]
    assert sorted(is_replay(answer) for answer in answers) == [False] + [True] * 7
    assert ParkedFact.objects.get(tenant=cast.tenant).times_told == 8
    assert Settlement.objects.filter(tenant=cast.tenant).count() == 1
    assert list(findings(cast.tenant)) == []
