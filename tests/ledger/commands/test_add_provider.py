"""Providers: a configuration that could not be asked is never stored, and the place to mend is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from ledger.models import Provider, Tenant
from tests.ledger.commands.support import Ran, run

pytestmark = pytest.mark.django_db

BANK: dict[str, Any] = {
    "request": {"url": "https://bank.example/refunds?key={idempotency_key}"},
    "auth": {"env": "PROVIDER_BANK_TOKEN"},
    "matches": "/data",
    "reference": "/id",
    "state": {"always": "done"},
    "content": {"/amount": "/amount"},
}


@pytest.fixture(autouse=True)
def acme() -> Tenant:
    return Tenant.objects.create(slug="acme", name="Acme")


def add(directory: Path, config: object, *, adapter: str = "http", name: str = "bank") -> Ran:
    file = directory / "bank.json"
    file.write_text(json.dumps(config))
    return run("add_provider", "--tenant", "acme", name, "--adapter", adapter, "--config", str(file))


def test_provider_is_kept_as_configured_and_only_once(tmp_path: Path) -> None:
    assert add(tmp_path, BANK).exit == 0
    kept = Provider.objects.get()
    assert (kept.name, kept.adapter, kept.config) == ("bank", "http", BANK)
    assert add(tmp_path, {**BANK, "max_pages": 3}).exit == 4
    assert Provider.objects.get().config == BANK


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({**BANK, "matches": "data"}, "/matches"),
        ({**BANK, "reference": 7}, "/reference"),
        ({**BANK, "retries": 3}, "/retries"),
        ({**BANK, "auth": {"env": "DATABASE_URL"}}, "/auth/env"),
        ({name: value for name, value in BANK.items() if name != "request"}, "/request"),
    ],
)
def test_mistake_is_named_by_its_place(tmp_path: Path, config: object, path: str) -> None:
    refused = add(tmp_path, config)
    assert (refused.exit, refused.data["path"]) == (2, path)
    assert "docs/adapters.md" in refused.data["mend"]
    assert not Provider.objects.exists()


def test_adapter_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    refused = add(tmp_path, BANK, adapter="carrier-pigeon")
    assert refused.exit == 2
    assert "carrier-pigeon" in refused.data["detail"]
    assert "http" in refused.data["detail"]


def test_unreadable_configuration_and_unknown_tenant_are_usage_errors(tmp_path: Path) -> None:
    assert add(tmp_path, []).exit == 2
    file = tmp_path / "bank.json"
    file.write_text(json.dumps(BANK))
    assert (
        run("add_provider", "--tenant", "globex", "x", "--adapter", "http", "--config", str(file)).exit == 2
    )
