"""Setting the demo up again changes nothing, and touches nobody it did not make."""

import json
import stat
from pathlib import Path

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.core.management import call_command

from dashboard.management.demo.cast import OWNER, PEOPLE, TENANTS
from dashboard.management.demo.seed import ensure_shop, seed
from dashboard.management.demo.state import Secrets
from ledger.management.command import Stopped
from ledger.models import Agent, ApiKey, Destination, PolicySnapshot, Provider, ReviewGroup, Tenant, User
from ledger.rules.keys import parse_api_key
from ledger.rules.vocabulary import Effect
from review.rights import rights_of

pytestmark = pytest.mark.django_db

URL = "http://127.0.0.1:4711"
COUNTED = (Tenant, User, Agent, ApiKey, PolicySnapshot, Provider, ReviewGroup)


@pytest.fixture(autouse=True)
def cheap_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PBKDF2PasswordHasher, "iterations", 1)


@pytest.fixture
def known(tmp_path: Path) -> Secrets:
    return Secrets.at(tmp_path / "demo.json")


def test_a_second_time_changes_nothing(known: Secrets) -> None:
    assert seed(known, URL)
    counts = [model.objects.count() for model in COUNTED]
    again = Secrets.at(known.path)
    assert not seed(again, URL)
    assert [model.objects.count() for model in COUNTED] == counts
    assert (again.passwords, again.api_keys) == (known.passwords, known.api_keys)
    assert counts[:2] == [2, 5]


def test_each_person_may_do_what_the_table_says(known: Secrets) -> None:
    seed(known, URL)
    fernhill, brightwater = (Tenant.objects.get(slug=tenant.slug) for tenant in TENANTS)
    rights = {
        person.username: [
            rights_of(User.objects.get(username=person.username), t) for t in (fernhill, brightwater)
        ]
        for person in PEOPLE
    }
    deciding = {name: [found.decide for found in pair] for name, pair in rights.items()}
    approving = {
        name: [found.may_approve("ticket.open", Effect.WRITE) for found in pair]
        for name, pair in rights.items()
    }
    assert deciding == {
        "ada": [True, False],
        "bruno": [True, False],
        "chen": [True, False],
        "dana": [False, False],
        "elif": [False, True],
    }
    assert approving == {**deciding, "chen": [False, False]}
    assert [found.view for found in rights["chen"]] == [True, True]
    assert [found.administer for found in rights["dana"]] == [True, True]
    assert rights["elif"][0].audit
    assert not rights["ada"][1].view


def test_people_sign_in_with_the_printed_password(known: Secrets) -> None:
    seed(known, URL)
    for person in PEOPLE:
        assert User.objects.get(username=person.username).check_password(known.password_of(person.username))


def test_the_owner_of_the_agents_is_no_approver(known: Secrets) -> None:
    seed(known, URL)
    assert set(Agent.objects.values_list("owner__username", flat=True)) == {OWNER}
    assert set(PolicySnapshot.objects.values_list("published_by__username", flat=True)) == {OWNER}


def test_secrets_are_for_this_user_alone(known: Secrets) -> None:
    seed(known, URL)
    assert stat.S_IMODE(known.path.stat().st_mode) == 0o600


def test_where_the_secrets_were_lost_new_ones_are_made(known: Secrets) -> None:
    seed(known, URL)
    known.path.unlink()
    anew = Secrets.at(known.path)
    assert seed(anew, URL)
    ada = User.objects.get(username="ada")
    assert ada.check_password(anew.password_of("ada"))
    assert not ada.check_password(known.password_of("ada"))


def test_somebody_else_of_the_same_name_is_left_alone(known: Secrets) -> None:
    stranger = User.objects.create_user("ada", "ada@example.org", "her own password")
    with pytest.raises(Stopped, match="nothing was changed"):
        seed(known, URL)
    stranger.refresh_from_db()
    assert stranger.check_password("her own password")


def test_a_revoked_key_is_replaced(known: Secrets) -> None:
    seed(known, URL)
    parts = parse_api_key(known.api_keys["fernhill"])
    assert parts is not None
    call_command("revoke_agent_key", parts.key_id)
    assert seed(known, URL)
    assert parse_api_key(known.api_keys["fernhill"]) != parts


def test_a_policy_tried_out_meanwhile_stays_in_force(known: Secrets, tmp_path: Path) -> None:
    seed(known, URL)
    stricter = tmp_path / "stricter.json"
    stricter.write_text(json.dumps({"default": "refuse", "tools": {}}))
    call_command("publish_policy", str(stricter), tenant="fernhill", by=OWNER)
    seed(known, URL)
    assert PolicySnapshot.objects.filter(tenant__slug="fernhill").latest("version").document["tools"] == {}


def test_look_ups_follow_the_provider_to_another_port(known: Secrets) -> None:
    seed(known, URL)
    seed(known, "http://127.0.0.1:4712")
    addresses = {provider.config["request"]["url"].split("/")[2] for provider in Provider.objects.all()}
    assert addresses == {"127.0.0.1:4712"}


def test_the_shop_is_told_where_it_listens_and_keeps_its_secret(known: Secrets) -> None:
    seed(known, URL)
    secret = ensure_shop(known, f"{URL}/results")
    assert ensure_shop(Secrets.at(known.path), "http://127.0.0.1:4712/results") == secret
    (shop,) = Destination.objects.all()
    assert (shop.tenant.slug, shop.url) == ("fernhill", "http://127.0.0.1:4712/results")
    known.shop_secret = ""
    assert ensure_shop(known, shop.url) != secret
