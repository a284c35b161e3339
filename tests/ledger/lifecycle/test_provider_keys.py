"""Which key a provider sees: never one under which it may have seen other arguments."""

from __future__ import annotations

from typing import Any

import pytest

from ledger import lifecycle
from ledger.models import Attempt
from ledger.rules.looked_up import LookedUpKind
from ledger.transactions import durable
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db

OTHER = {"title": "Printer out of paper"}


@pytest.fixture
def people() -> Cast:
    return cast()


def approve(people: Cast, attempt: Attempt, **more: Any) -> None:
    item = make.item_of(attempt)
    durable(lambda: lifecycle.approve(item_id=item.pk, by=people.approver, why="checked", **more))


def keys_by_content(attempt: Attempt) -> dict[str, set[str]]:
    """Each key of the operation, with the hashes of the arguments it stands for."""
    seen: dict[str, set[str]] = {}
    for one in Attempt.objects.filter(operation=attempt.operation_id):
        seen.setdefault(one.idempotency_key, set()).add(one.args_hash)
    return seen


def test_other_arguments_under_the_operations_key_go_under_a_provider_key_of_their_own(people: Cast) -> None:
    refused = {"no_effect": True, "retryable": True, "error_class": "refused"}
    first = make.reported(people.key, make.dispatched(people.key, make.TICKET), "failed", **refused)
    variant = make.variant(people.key, first, OTHER)
    approve(people, variant)
    sent = make.send(people.key, make.fresh(variant))
    assert sent.idempotency_key != first.idempotency_key


def test_a_new_key_for_the_old_arguments_is_not_that_of_corrected_ones(people: Cast) -> None:
    first = make.for_a_person(people.key)
    make.corrected(first, people.operator, OTHER)
    approve(people, first, new_provider_key=True)
    make.send(people.key, make.fresh(first))
    assert all(len(contents) == 1 for contents in keys_by_content(first).values())


def test_nor_is_one_that_an_approval_waits_to_use(people: Cast) -> None:
    first = make.for_a_person(people.key)
    approve(people, first, new_provider_key=True)
    make.variant(people.key, first, OTHER)
    make.send(people.key, make.fresh(first))
    assert all(len(contents) == 1 for contents in keys_by_content(first).values())


def test_the_same_arguments_sent_again_keep_their_key(people: Cast) -> None:
    first = make.for_a_person(people.key)
    approve(people, first)
    assert make.send(people.key, make.fresh(first)).idempotency_key == first.idempotency_key


def test_the_window_of_a_key_that_was_used_without_leave_is_not_opened_again(people: Cast) -> None:
    """Nobody knows when the provider first saw it, but not before it was made."""
    rule = {**make.TOOLS[make.MAIL], "key_ttl_s": 3_600}
    make.policy(people.tenant, tools={**make.TOOLS, make.MAIL: rule})
    first = make.reported(people.key, make.recorded(people.key), "unknown")
    assert first.maybe_sent
    make.waited(Attempt.objects.filter(pk=first.pk))
    first = make.looked_up(first, LookedUpKind.ABSENT, canary_seen=True)
    approve(people, first)
    assert make.send(people.key, first).key_first_sent_at == first.created_at
