"""R45: An outage of a provider must not push everything to people.

Kind: absence of an answer taken for an answer. Unreachable and unresolved for too long are two things:
nothing is escalated for its age while nobody could ask, and a person is called for what a reachable provider
cannot say. domain.md says the same.
"""

from __future__ import annotations

from datetime import timedelta

from django.db.models import F

from ledger.models import Attempt, LookUp, Provider, ReviewItem
from ledger.reconciliation import reconcile_once
from ledger.rules.looked_up import LookedUpKind
from ledger.transactions import database_clock
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.awaiting import lost, states, unknown
from tests.incidents.helping import asked_through_a_line
from tests.incidents.scene import IN_PROGRESS, Scene
from tests.support import make
from tests.support.proxy import down, honest

MANY = 25
PASSES = 12
TWO_HOURS = timedelta(hours=2)


def next_probe() -> None:
    """The wait until then is over, for the provider and for every attempt."""
    Provider.objects.update(probe_at=database_clock())
    Attempt.objects.filter(state="UNKNOWN").update(next_check_at=database_clock())


def hours_pass() -> None:
    Attempt.objects.filter(state="UNKNOWN").update(
        entered_state_at=F("entered_state_at") - TWO_HOURS, lease_ended_at=F("lease_ended_at") - TWO_HOURS
    )
    ReviewItem.objects.update(due_at=F("due_at") - TWO_HOURS)


def test_nothing_is_escalated_while_nobody_could_ask(scene: Scene) -> None:
    lost(scene, MANY)
    with asked_through_a_line(scene) as line:
        line.fault = down
        for _ in range(PASSES):
            hours_pass()
            next_probe()
            reconcile_once()
        assert states(scene.people.tenant) == {"UNKNOWN"}
        assert Attempt.objects.filter(checks__gt=0).count() == 0
        # one at a time finds out whether it is back, however many wait
        assert len(line.requests) <= PASSES + 1
        assert Provider.objects.get(name="refunds").unavailable_since is not None

        line.fault = honest
        next_probe()
        while reconcile_once().more:
            pass
        assert states(scene.people.tenant) == {"OUTCOME_CONFIRMED"}
        assert Provider.objects.get(name="refunds").unavailable_since is None
        assert scene.all_effects() == MANY
        nothing_else_went_wrong(scene)


def test_what_a_reachable_provider_cannot_say_is_for_a_person(scene: Scene) -> None:
    lost(scene, 1)
    attempt = Attempt.objects.get(tenant=scene.people.tenant)
    limit = 20  # max_checks
    for _ in range(limit):
        make.looked_up(attempt, LookedUpKind.UNAVAILABLE)
    assert unknown(scene.people.tenant) == 1
    for _ in range(limit):
        next_probe()
        scene.asks(IN_PROGRESS)
    attempt = make.fresh(attempt)
    assert (attempt.state, attempt.reason) == ("MANUAL_REVIEW", "unresolved")
    assert LookUp.objects.filter(answer="found").count() == limit
    nothing_else_went_wrong(scene)
