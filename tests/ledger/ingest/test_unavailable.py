"""Where the ledger cannot answer it says so, and that nothing may be sent."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from django.db import transaction

from ledger.models import Operation
from tests.ledger.ingest.cast import Cast
from tests.ledger.ingest.steps import new_attempt, post_dispatch
from tests.support.api import Api, WebServer, slug_of


def check_unavailable(answer: httpx.Response) -> None:
    assert (answer.status_code, slug_of(answer)) == (503, "unavailable")
    assert int(answer.headers["Retry-After"]) > 0
    assert answer.json()["retryable"] is True


def test_rows_locked_by_others_are_worth_asking_again(api: Api) -> None:
    attempt = new_attempt(api)
    with transaction.atomic():
        Operation.objects.select_for_update().get(pk=attempt["operation_id"])
        check_unavailable(post_dispatch(api, attempt))
    assert post_dispatch(api, attempt).status_code == 200


@pytest.fixture(scope="module")
def without_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    log = tmp_path_factory.mktemp("web") / "web.log"
    nowhere = "postgresql://ledger@/ledger?host=/nonexistent"
    with WebServer(database_url=nowhere, log=log) as running:
        yield running


def test_without_a_database_nothing_is_promised(without_database: WebServer, cast: Cast) -> None:
    api = Api(without_database.address, cast.key()[0])
    try:
        check_unavailable(api.post("/intents", operation_key="k", tool="email.send", args={}))
        assert slug_of(api.get("/nowhere")) == "not-found"
        assert api.get("/openapi.json").status_code == 200
    finally:
        api.close()
