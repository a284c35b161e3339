"""Policies: numbered, never published twice, and every mistake named by its place."""

import json
from pathlib import Path
from typing import Any

import pytest

from ledger.models import PolicySnapshot, Tenant, User
from tests.ledger.commands.support import Ran, run

pytestmark = pytest.mark.django_db

MAIL: dict[str, Any] = {"tools": {"email.send": {"effect": "message"}}}


@pytest.fixture(autouse=True)
def acme() -> Tenant:
    return Tenant.objects.create(slug="acme", name="Acme")


def publish(directory: Path, document: Any, *more: str) -> Ran:
    file = directory / "policy.json"
    file.write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
    return run("publish_policy", "--tenant", "acme", str(file), *more)


def test_versions_count_up_and_equal_content_makes_none(tmp_path: Path) -> None:
    first = publish(tmp_path, MAIL)
    again = publish(tmp_path, json.dumps(MAIL, indent=4).encode())
    second = publish(tmp_path, {**MAIL, "default": "refuse"})
    assert [(ran.data["version"], ran.data["published"]) for ran in (first, again, second)] == [
        (1, True), (1, False), (2, True),
    ]  # fmt: skip
    assert first.data["hash"] == again.data["hash"] == PolicySnapshot.objects.get(version=1).content_hash


def test_editor_is_kept_because_they_may_not_approve_under_it(tmp_path: Path) -> None:
    User.objects.create_user("ada")
    publish(tmp_path, MAIL, "--by", "ada")
    editor = PolicySnapshot.objects.get().published_by
    assert editor is not None
    assert editor.get_username() == "ada"


def test_mistake_is_named_by_its_place(tmp_path: Path) -> None:
    refused = publish(tmp_path, {"tools": {"email.send": {"effect": "massage"}}})
    assert refused.exit == 2
    assert refused.data["path"] == "/tools/email.send/effect"
    assert "massage" not in refused.data["mend"]
    assert not PolicySnapshot.objects.exists()


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b'{"tools": {}, "tools": {}}', b"\xff", b'{"a": NaN}', b" " * 300_000]
)
def test_unreadable_document_is_a_usage_error(tmp_path: Path, raw: bytes) -> None:
    assert publish(tmp_path, raw).exit == 2
    assert not PolicySnapshot.objects.exists()


def test_missing_file_and_missing_tenant_say_so(tmp_path: Path) -> None:
    missing = run("publish_policy", "--tenant", "acme", str(tmp_path / "none.json"))
    assert missing.exit == 2
    assert "No such file" in missing.data["detail"]
    (tmp_path / "policy.json").write_text("{}")
    assert run("publish_policy", "--tenant", "globex", str(tmp_path / "policy.json")).exit == 2


def test_provider_that_is_not_configured_yet_is_mentioned(tmp_path: Path) -> None:
    document = {"tools": {"pay": {"effect": "payment", "provider": "bank"}}}
    assert publish(tmp_path, document).data["providers_missing"] == ["bank"]
