"""Every door through which JSON comes in: what one refuses all refuse, and nothing of it is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from ledger.models import (
    Delivery,
    Destination,
    Event,
    LookUp,
    Operation,
    PolicySnapshot,
    Provider,
    Refusal,
)
from review import decisions
from tests.incidents.scene import MAIL, Scene, configuration
from tests.ledger.commands.support import run
from tests.support import make
from tests.support.api import PREFIX, slug_of
from tests.support.proxy import Proxy, answering


def every_call(scene: Scene) -> list[tuple[str, str]]:
    """Method and path of each call that takes a body, as the served document lists them, about things that
    exist."""
    served = httpx.get(f"{scene.server.address}{PREFIX}/openapi.json", trust_env=False).json()
    leave = scene.dispatched("exists", run="r")
    about = {"attempt_id": leave["attempt_id"], "operation_id": leave["operation_id"], "run": "r"}
    about["delivery_id"] = _told_somebody(scene)
    return [
        (method.upper(), path.removeprefix(PREFIX).format_map(about))
        for path, calls in served["paths"].items()
        for method, call in calls.items()
        if "requestBody" in call
    ]


def _told_somebody(scene: Scene) -> str:
    """The id of a delivery that waits."""
    tenant = scene.people.tenant
    Destination.objects.get_or_create(
        tenant=tenant, name="shop", defaults={"url": "https://shop.example/hook", "ack": "response"}
    )
    if not Delivery.objects.filter(tenant=tenant).exists():
        scene.confirmed("told")
    return str(Delivery.objects.filter(tenant=tenant).values_list("pk", flat=True)[0])


def refused_by_every_call(scene: Scene, body: bytes) -> list[str]:
    """What each call says to this body; none stores anything."""
    calls = every_call(scene)
    assert len(calls) >= 9
    before = stored()
    details = []
    for method, path in calls:
        answer = scene.api.http.request(
            method, path, content=body, headers={"Content-Type": "application/json"}
        )
        assert (answer.status_code, slug_of(answer)) == (400, "malformed-json"), (method, path, answer.text)
        details.append(str(answer.json()["detail"]))
    assert stored() == before
    return details


def refused_at_the_desk(scene: Scene, typed: str) -> None:
    """Corrected arguments, as a person types them."""
    held = scene.recorded("held", "deploy.run")
    item = make.item_of(scene.attempt(held))
    before = stored()
    with pytest.raises(decisions.ArgumentsUnreadable):
        decisions.relink_arguments(scene.people.operator, item.pk, why="wrong", typed=typed)
    assert stored() == before


def refused_as_a_file(scene: Scene, directory: Path, document: bytes) -> None:
    """A policy and a provider's configuration, as an administrator hands them in."""
    file = directory / "document.json"
    file.write_bytes(document)
    tenant, before = scene.people.tenant.slug, PolicySnapshot.objects.count()
    assert run("publish_policy", "--tenant", tenant, str(file)).exit == 2
    added = run("add_provider", "--tenant", tenant, "new", "--adapter", "http", "--config", str(file))
    assert added.exit == 2
    assert PolicySnapshot.objects.count() == before


def never_read_as_an_answer(scene: Scene, document: bytes) -> None:
    """What a provider says: not readable is not an answer, so that nothing follows from it."""
    unknown = scene.unknown("asked", tool=MAIL)
    asked = Provider.objects.filter(tenant=scene.people.tenant, name="messages")
    with Proxy(scene.provider.url) as proxy:
        proxy.fault = answering(200, document)
        asked.update(config=configuration(proxy.url, MAIL))
        scene.time_passes()
        scene.recover()
        assert proxy.requests
    assert LookUp.objects.get(attempt=unknown["attempt_id"]).answer == "unavailable"
    assert scene.state(unknown) == "UNKNOWN"
    asked.update(config=configuration(scene.provider.url, MAIL))


def stored() -> Mapping[str, int]:
    return {model.__name__: model.objects.count() for model in (Operation, Event, Refusal)}


def as_args(text: str) -> str:
    """These arguments, in an intent that would be fine but for them."""
    return f'{{"operation_key": {json.dumps("k")}, "tool": "note.add", "args": {text}}}'
