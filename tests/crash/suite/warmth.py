"""Once in the lane, before any child is forked: run through everything, so that children find it loaded.

What a first request does (routes, parsed models, compiled queries) would otherwise be done again by every
child that was forked after a kill.
"""

from __future__ import annotations

import ssl
from functools import cache
from pathlib import Path

import httpx
from django.db import connections

from ledger.deliveries import deliver_once, stop_sending
from ledger.reconciliation import reconcile_once, send_once, sweep_once
from tests.crash.suite import tenants, verdict
from tests.crash.suite.children import freeze
from tests.crash.suite.effects import Effects
from tests.crash.suite.kept import Kept
from tests.crash.suite.plan import Plan, PlannedOperation
from tests.crash.suite.standing import standing_of

SEED = 0
NOBODY = "http://127.0.0.1:9"
RULE = {"effect": "write", "dispatch_timeout_s": 30, "review": "always"}


def share_tls() -> None:
    """One context for all clients of this process and its children, who speak plain HTTP and would otherwise
    read the certificates of the world for each client they make."""
    ssl.create_default_context = cache(ssl.create_default_context)  # type: ignore[assignment]
    httpx.create_ssl_context()


def warm_up() -> None:
    """Every child's work once, in this process; then the connections it took are closed, and the children
    share what is loaded instead of copying it."""
    share_tls()
    operation = PlannedOperation(rule=RULE, keys_s=0)
    plan = Plan(seed=SEED, aim="", operations=(operation,), faults=(), messages=())
    world = tenants.prepare(plan, NOBODY, NOBODY)
    _call_the_api(world.key, plan)
    for work in (sweep_once, reconcile_once, send_once, deliver_once):
        work()
    stop_sending()
    standing_of(world.tenant_id, delivers=True)
    verdict.judge(_case(world))
    connections.close_all()
    freeze()


def _case(world: tenants.World) -> verdict.Case:
    marks = world.correlation_ids
    effects = Effects(world.tenant_id, marks, blind=frozenset(), resumed={}, found=())
    return verdict.Case(effects, Kept((), ()), may_wait=True, quiet_at=0.0, books=Path(), places=())


def _call_the_api(key: str, plan: Plan) -> None:
    from config.wsgi import application

    intent = {
        "worker_id": "warm",
        "operation_key": tenants.operation_key(0),
        "tool": tenants.tool(0),
        "args": tenants.args_of(plan, 0),
    }
    transport = httpx.WSGITransport(app=application)
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(transport=transport, base_url="http://127.0.0.1/api/v1", headers=headers) as api:
        answer = api.post("/intents", json=intent)
        answer.raise_for_status()
        attempt = answer.json()["attempt_id"]
        api.post(
            f"/attempts/{attempt}/dispatch", json={"worker_id": "warm", "args_hash": "v1:sha256:" + "0" * 64}
        )
        api.post(f"/attempts/{attempt}/outcome", json={"worker_id": "warm", "outcome": "unknown"})
