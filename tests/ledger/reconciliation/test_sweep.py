"""What one pass of the sweep takes up: nothing that it would leave alone stands before what is over."""

from __future__ import annotations

from functools import partial

import pytest

from ledger import lifecycle
from ledger.models import Attempt
from ledger.reconciliation import sweep_once
from ledger.transactions import database_clock, durable
from tests.support import make
from tests.support.cast import cast

pytestmark = pytest.mark.django_db


def test_what_is_approved_and_not_fetched_keeps_no_other_tenant_waiting() -> None:
    people = cast()
    make.policy(people.other_tenant)
    theirs = make.key(make.agent(people.other_tenant, people.stranger))
    approved, never_started = make.held(people.key), make.recorded(theirs)
    item = make.item_of(approved).pk
    durable(partial(lifecycle.approve, item_id=item, by=people.approver, why="checked"))
    for attempt in (approved, never_started):
        Attempt.objects.filter(pk=attempt.pk).update(start_by=database_clock())
    assert sweep_once(at_most=1).not_started == 1
    assert (make.fresh(approved).state, make.fresh(never_started).state) == ("INTENT_RECORDED", "FAILED")
