"""Tenants, keys and destinations: made once, refused clearly."""

from datetime import timedelta
from io import StringIO

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.utils import timezone

from ledger.models import Agent, ApiKey, Destination, ReviewGroup, Tenant, User
from ledger.rules.keys import parse_api_key, secret_hash
from tests.ledger.commands.support import Ran, run

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme() -> Tenant:
    assert run("create_tenant", "acme").exit == 0
    return Tenant.objects.get(slug="acme")


@pytest.fixture
def olga() -> User:
    return User.objects.create_user("olga")


def key_for_bot(*more: str, owner: str = "olga", scope: str = "tool:email.*") -> Ran:
    return run(
        "create_agent_key", "--tenant", "acme", "--agent", "bot", "--owner", owner, "--scope", scope, *more
    )


def test_tenant_comes_with_its_first_owner() -> None:
    assert run("create_tenant", "acme", "--name", "Acme Ltd").data == {
        "tenant": "acme", "name": "Acme Ltd", "review_group": "Review desk",
    }  # fmt: skip
    group = ReviewGroup.objects.get(tenant__slug="acme")
    assert group.is_first_owner
    assert group.name == "Review desk"


def test_second_tenant_of_one_slug_is_a_conflict(acme: Tenant) -> None:
    again = run("create_tenant", "acme", "--name", "Other")
    assert again.exit == 4
    assert "already" in again.data["detail"]
    acme.refresh_from_db()
    assert acme.name == "acme"
    assert ReviewGroup.objects.count() == 1


@pytest.mark.parametrize("slug", ["", "Acme", "a/b", "a-", "ä", "a" * 64, "a\n"])
def test_slug_must_fit_addresses(slug: str) -> None:
    assert run("create_tenant", slug).exit == 2
    assert not Tenant.objects.exists()


@pytest.mark.parametrize("name", [" ", "a\x00b", "a\u202eb", "a" * 101, " a"])
def test_name_must_be_seen_as_it_is(name: str) -> None:
    assert run("create_tenant", "acme", "--name", name).exit == 2


def test_key_is_shown_once_and_only_its_hash_is_kept(acme: Tenant, olga: User) -> None:
    made = key_for_bot("target:acct-1", "--verbs", "ingest, ack", "--days", "7")
    parts = parse_api_key(made.data["key"])
    assert parts is not None
    key = ApiKey.objects.get(key_id=made.data["key_id"])
    assert parts.key_id == key.key_id
    assert key.secret_hash == secret_hash(parts.secret)
    assert (key.scopes, key.verbs) == (["tool:email.*", "target:acct-1"], ["ingest", "ack"])
    assert abs(key.expires_at - timezone.now() - timedelta(days=7)) < timedelta(minutes=1)
    assert parts.secret not in str(ApiKey.objects.values().get())


def test_agent_is_made_with_its_first_key_and_keeps_its_later_ones(acme: Tenant, olga: User) -> None:
    assert key_for_bot().data["key"] != key_for_bot().data["key"]
    assert Agent.objects.get(name="bot").owner == olga
    assert ApiKey.objects.filter(agent__name="bot").count() == 2


def test_key_for_another_owner_is_a_conflict_and_names_the_mend(acme: Tenant, olga: User) -> None:
    User.objects.create_user("otto")
    assert key_for_bot().exit == 0
    refused = key_for_bot(owner="otto")
    assert refused.exit == 4
    assert refused.data["mend"] == "Name its owner: --owner olga"
    assert ApiKey.objects.count() == 1


def test_inactive_owner_gets_no_key(acme: Tenant, olga: User) -> None:
    User.objects.filter(pk=olga.pk).update(is_active=False)
    assert key_for_bot().exit == 3
    assert not Agent.objects.exists()


@pytest.mark.parametrize(
    "scope", ["email.*", "tool:", "target:x", "tools:x", "tool:" + "x" * 200, "tool:a\x00"]
)
def test_scope_that_means_nothing_is_refused(acme: Tenant, olga: User, scope: str) -> None:
    assert key_for_bot(scope=scope).exit == 2
    assert not ApiKey.objects.exists()


@pytest.mark.parametrize(
    "more", [["--verbs", "ingest,write"], ["--verbs", ""], ["--days", "0"], ["--days", "-1"]]
)
def test_unknown_verb_or_no_life_is_refused(acme: Tenant, olga: User, more: list[str]) -> None:
    assert key_for_bot(*more).exit == 2


def test_missing_tenant_and_owner_name_the_command_that_makes_them(olga: User) -> None:
    assert key_for_bot().data["mend"] == "Create it: python manage.py create_tenant acme"
    run("create_tenant", "acme")
    assert "create_operator otto" in key_for_bot(owner="otto").data["mend"]


def test_first_revocation_stands(acme: Tenant, olga: User) -> None:
    made = key_for_bot().data
    first = run("revoke_agent_key", made["key_id"])
    again = run("revoke_agent_key", made["key"])
    assert (first.exit, first.data["revoked_now"]) == (0, True)
    assert (again.exit, again.data["revoked_now"]) == (0, False)
    assert again.data["revoked_at"] == first.data["revoked_at"]


def test_unknown_key_is_a_usage_error() -> None:
    assert run("revoke_agent_key", "nothing").exit == 2


def test_people_read_sentences(acme: Tenant) -> None:
    out = StringIO()
    call_command("create_tenant", "globex", stdout=out)
    assert out.getvalue() == "Created tenant globex. Its questions belong to the group 'Review desk'.\n"
    with pytest.raises(CommandError, match="already; nothing was changed"):
        call_command("create_tenant", "acme")


def destination(url: str, *more: str) -> Ran:
    return run("add_destination", "--tenant", "acme", "books", url, *more)


def test_destination_is_added_once(acme: Tenant) -> None:
    added = destination("https://books.example/hook?a=1", "--ack", "explicit")
    kept = Destination.objects.get()
    assert (added.exit, kept.id, kept.ack) == (0, added.data["destination_id"], "explicit")
    assert destination("https://other.example/").exit == 4
    assert Destination.objects.get().url == "https://books.example/hook?a=1"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://books.example/", "https://", "https://user:pw@books.example/", "https://books.example:99999/",
        "https://books.example/#part", "//books.example/", "https://bo oks.example/", "https://[::1/",
        "https://books.example\\@evil.example/", "https://books.example/" + "a" * 2000, "https://bücher.example/",
        "https://books..example/", "https://books.example:0/", "javascript:alert(1)",
    ],
)  # fmt: skip
def test_address_of_a_wrong_shape_is_refused(acme: Tenant, url: str) -> None:
    assert destination(url).exit == 2
    assert not Destination.objects.exists()


def test_plain_http_only_in_development(acme: Tenant, settings: LazySettings) -> None:
    settings.DEVELOPMENT = False
    assert destination("http://books.example/").exit == 2
    settings.DEVELOPMENT = True
    assert destination("http://books.example:8080/").exit == 0
