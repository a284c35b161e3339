"""The shipped vectors: ours and other people's verifiers agree about every one of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, tzinfo
from typing import Any

import pytest
import standardwebhooks
import svix.webhooks

from ledger.client.consumer import NotFromTheLedger, Verifier
from tests.support import vectors

SHIPPED: dict[str, list[dict[str, Any]]] = json.loads(vectors.FILE.read_text(encoding="utf-8"))
GOOD, BAD = ({one["name"]: one for one in SHIPPED[kind]} for kind in ("good", "bad"))
OTHERS: dict[str, Any] = {"standardwebhooks": standardwebhooks.Webhook, "svix": svix.webhooks.Webhook}


def test_the_file_is_what_the_script_writes() -> None:
    assert vectors.FILE.read_text(encoding="utf-8") == vectors.text()
    assert len(GOOD) == len(SHIPPED["good"]) >= 15
    assert len(BAD) == len(SHIPPED["bad"]) >= 30


def ours(vector: dict[str, Any]) -> None:
    """Raises NotFromTheLedger."""
    verifier = Verifier(vector["secret"])
    read = verifier.verify if vector["event"] else verifier.check
    read(vector["headers"], vector["body"].encode(), now=vector["now"])


@pytest.fixture
def others_at(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Other people's verifiers ask the clock; here it stands still."""

    def stand_still(now: int) -> None:
        class Clock(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> Any:
                return datetime.fromtimestamp(now, tz or UTC)

        monkeypatch.setattr("standardwebhooks.webhooks.datetime", Clock)

    return stand_still


@pytest.mark.parametrize("name", GOOD)
def test_a_good_one_is_accepted(name: str, others_at: Any) -> None:
    vector = GOOD[name]
    ours(vector)
    others_at(vector["now"])
    for verifier in OTHERS.values():
        verifier(vector["secret"]).verify(vector["body"].encode(), vector["headers"])


@pytest.mark.parametrize("name", BAD)
def test_a_bad_one_is_refused(name: str, others_at: Any) -> None:
    vector = BAD[name]
    with pytest.raises(NotFromTheLedger):
        ours(vector)
    others_at(vector["now"])
    for verifier in OTHERS.values():
        with pytest.raises((standardwebhooks.WebhookVerificationError, ValueError)):  # malformed: ValueError
            verifier(vector["secret"]).verify(vector["body"].encode(), vector["headers"])
