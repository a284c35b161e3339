"""R101: a guessable key returns another tenant's record, or blocks them by being used first.

Kind: a name that is looked for in the whole world instead of behind the wall. Names, ids, twins, runs, people
and provider keys are each tenant's own. Our rules decide otherwise than the report asked: no call has a
tenant in its body, so that one in it is an unknown field (422), whosever it is.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import httpx

from ledger.models import Refusal, User
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import ARGS, PAYMENT, Body, Scene
from tests.support.api import Api, at_once, slug_of

PLACE: dict[str, Any] = {"run": "T1", "step": "S1"}


def post(api: Api, args: Body = ARGS[PAYMENT], **more: Any) -> httpx.Response:
    return api.post("/intents", operation_key="1", tool=PAYMENT, args=args, **{**PLACE, **more})


def test_the_same_key_is_each_tenants_own(scene: Scene) -> None:
    mine = scene.recorded("1", **PLACE)
    same = post(scene.stranger)
    assert (same.status_code, same.json()["directive"]) == (201, "dispatch"), "and no twin of mine"
    assert same.json()["operation_id"] != mine["operation_id"]
    other = post(scene.stranger, {"amount": 9, "currency": "USD"})
    assert (other.status_code, slug_of(other)) == (422, "idempotency-key-reused"), "with what is their own"
    assert scene.history(mine) == ["attempt.intent"], "nothing of it came to me"
    assert scene.recorded("1", **PLACE)["directive"] == "dispatch"
    nothing_else_went_wrong(scene, strangers_acted=True)


def test_the_provider_sees_different_keys(scene: Scene) -> None:
    leaves = []
    for api in (scene.api, scene.stranger):
        about = post(api).json()
        path = f"/attempts/{about['attempt_id']}/dispatch"
        leaves.append(api.post(path, worker_id="w1", args_hash=about["args_hash"]).json())
    assert leaves[0]["idempotency_key"] != leaves[1]["idempotency_key"]
    assert leaves[0]["correlation_id"] != leaves[1]["correlation_id"]
    nothing_else_went_wrong(scene, strangers_acted=True)


def test_whoever_uses_a_key_first_blocks_nobody(scene: Scene) -> None:
    answers = at_once([partial(post, api) for api in (scene.api, scene.stranger) * 4])
    assert sorted(answer.status_code for answer in answers) == [200] * 6 + [201] * 2
    assert len({answer.json()["operation_id"] for answer in answers}) == 2
    nothing_else_went_wrong(scene, strangers_acted=True)


def test_a_tenant_in_the_body_is_no_way_through_the_wall(scene: Scene) -> None:
    for named in (scene.people.tenant.slug, scene.people.other_tenant.slug, scene.people.tenant.pk):
        for field in ("tenant", "tenant_id"):
            body: Body = {field: named}
            answer = post(scene.api, **body)
            assert (answer.status_code, slug_of(answer)) == (422, "invalid-request")
            assert f"/{field}" in answer.json()["detail"]
    assert not Refusal.objects.exists()
    nothing_else_went_wrong(scene)


def test_what_is_theirs_is_as_unknown_as_what_never_was(scene: Scene) -> None:
    """By id in every call, by key, hash, run and tool in every list, and by the names of people."""
    leave = scene.dispatched("secret-key", **PLACE)
    never = "0" * 26
    calls = [
        ("POST", "/attempts/{}/dispatch", {"worker_id": "w1", "args_hash": leave["args_hash"]}, "attempt_id"),
        ("POST", "/attempts/{}/heartbeat", {"worker_id": "w1", "lease_epoch": 1}, "attempt_id"),
        (
            "POST",
            "/attempts/{}/provider-request",
            {"worker_id": "w1", "provider_request_id": "p"},
            "attempt_id",
        ),
        ("POST", "/attempts/{}/outcome", {"worker_id": "w1", "outcome": "unknown"}, "attempt_id"),
        ("GET", "/operations/{}", None, "operation_id"),
        ("GET", "/operations/{}/events", None, "operation_id"),
        ("POST", "/operations/{}/cancel", {"reason": "x"}, "operation_id"),
    ]
    for method, path, body, name in calls:
        prefix = leave[name].split("_")[0]
        told = [
            scene.stranger.http.request(method, path.format(about), json=body)
            for about in (leave[name], f"{prefix}_{never}")
        ]
        assert told[0].status_code == told[1].status_code, path
        bodies = [{**answer.json(), "request_id": ""} for answer in told]
        assert bodies[0] == bodies[1], path
        assert {name.lower() for name in told[0].headers} == {name.lower() for name in told[1].headers}
    asked = {"operation_key": "secret-key", "run": "T1", "args_hash": leave["args_hash"], "tool": PAYMENT}
    for query in ({name: value} for name, value in asked.items()):
        assert scene.stranger.get("/operations", **query).json()["operations"] == []
    mine = User.objects.get(username="second-operator")
    named = [post(scene.stranger, requested_by=name) for name in (mine.username, "nobody-at-all")]
    assert {slug_of(answer) for answer in named} == {"unknown-person"}
    assert named[0].json()["detail"] == named[1].json()["detail"]
    assert scene.stranger.post("/recover", worker_id="w1").json() == {"attempts": []}
    assert scene.state(leave) == "DISPATCHED"
    nothing_else_went_wrong(scene, strangers_acted=True)
