"""The served OpenAPI document is complete, true, and survives being used as a source of odd requests."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from jsonschema_rs import ValidationError
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from ledger.ingest.problems import PROBLEMS
from ledger.models import Delivery, Destination
from ledger.rules.authority import Reason
from tests.ledger.ingest.cast import Cast
from tests.ledger.ingest.contract import Contract
from tests.ledger.ingest.steps import sent_attempt
from tests.support.api import PREFIX, Api, WebServer, slug_of

CALLS = {
    "POST /intents", "POST /attempts/{attempt_id}/dispatch", "POST /attempts/{attempt_id}/heartbeat",
    "POST /attempts/{attempt_id}/provider-request", "POST /attempts/{attempt_id}/outcome", "POST /outcomes",
    "POST /operations/{operation_id}/cancel", "GET /operations/{operation_id}", "GET /operations",
    "GET /operations/{operation_id}/events", "PUT /runs/{run}", "GET /runs/{run}", "POST /runs/{run}/usage",
    "PUT /runs/{run}/checkpoint", "POST /recover", "POST /deliveries/{delivery_id}/ack",
}  # fmt: skip

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]


def calls_of(document: dict[str, Any]) -> dict[str, Any]:
    return {
        f"{method.upper()} {path.removeprefix(PREFIX)}": call
        for path, calls in document["paths"].items()
        for method, call in calls.items()
    }


def test_every_call_is_described(contract: Contract) -> None:
    assert contract.document["openapi"].startswith("3.1")
    assert set(calls_of(contract.document)) == CALLS


def test_every_error_is_a_problem(contract: Contract) -> None:
    for name, call in calls_of(contract.document).items():
        for status, answer in call["responses"].items():
            expected = {"application/problem+json"} if int(status) >= 400 else {"application/json"}
            assert set(answer["content"]) == expected, (name, status)


def test_every_call_asks_for_a_key(contract: Contract) -> None:
    for name, call in calls_of(contract.document).items():
        assert call["security"], name
        assert {"401", "403"} <= set(call["responses"]), name
    assert contract.document["components"]["securitySchemes"]["KeyWithVerb"]["scheme"] == "bearer"


def test_every_status_of_the_table_is_declared_somewhere(contract: Contract) -> None:
    declared = {status for call in calls_of(contract.document).values() for status in call["responses"]}
    assert {str(kind.status) for kind in PROBLEMS.values()} - declared == {"405"}


def test_every_reason_of_authority_has_its_problem() -> None:
    assert {reason.value for reason in Reason} == {
        kind.slug for kind in PROBLEMS.values() if kind.status == 403
    }


@pytest.mark.parametrize("slug", PROBLEMS)
def test_every_problem_says_what_and_how_to_mend(slug: str) -> None:
    kind = PROBLEMS[slug]
    assert kind.slug == slug
    assert all(text == text.strip() and len(text) > 5 for text in (kind.title, kind.explanation, kind.mend))
    assert kind.explanation.endswith(".")
    assert kind.mend.endswith(".")
    assert not kind.title.endswith(".")


def test_there_is_no_docs_page(api: Api) -> None:
    assert slug_of(api.get("/docs")) == "not-found"
    assert slug_of(api.get("/")) == "not-found"


def delivery_of(cast: Cast, api: Api) -> str:
    """A delivery that waits to be sent."""
    Destination.objects.create(tenant=cast.tenant, name="books", url="https://books.example/", ack="explicit")
    told = sent_attempt(api, operation_key="told")
    said = {"worker_id": "w1", "outcome": "succeeded", "result_ref": "r-1"}
    assert api.post(f"/attempts/{told['attempt_id']}/outcome", **said).status_code == 200
    return Delivery.objects.get(tenant=cast.tenant).pk


@pytest.mark.parametrize("name", sorted(CALLS))
def test_odd_requests_get_declared_answers(
    server: WebServer, cast: Cast, api: Api, contract: Contract, name: str
) -> None:
    method, path = name.split()
    attempt = sent_attempt(api)
    api.put("/runs/r1")
    known = {
        "attempt_id": attempt["attempt_id"],
        "operation_id": attempt["operation_id"],
        "delivery_id": delivery_of(cast, api),
        "run": "r1",
    }
    schema = schemathesis.openapi.from_dict(contract.document)
    headers = {"Authorization": f"Bearer {cast.key()[0]}"}

    @settings(
        max_examples=12,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )
    @given(case=schema[PREFIX + path][method].as_strategy())
    def ask(case: schemathesis.Case[Any]) -> None:
        case.path_parameters = {part: known[part] for part in case.path_parameters or {}}
        case.call_and_validate(base_url=server.address, headers=headers, checks=CHECKS)

    ask()
    assert httpx.get(f"{server.address}/healthz", trust_env=False).status_code == 200


LIES = {
    "another status": (418, {}),
    "a field short": (200, {"operations": []}),
    "another type": (200, {"operations": {}, "next_cursor": None}),
    "a directive of its own": (200, {"attempts": [{"directive": "go ahead"}]}),
}


@pytest.mark.parametrize(("status", "body"), LIES.values(), ids=LIES)
def test_an_answer_that_is_not_declared_is_noticed(
    contract: Contract, server: WebServer, status: int, body: dict[str, Any]
) -> None:
    asked = httpx.Request("GET", f"{server.address}{PREFIX}/operations")
    with pytest.raises((AssertionError, ValidationError)):
        contract.check(httpx.Response(status, json=body, request=asked))
