"""What the suite's judge blames the ledger for, where an attempt ended by a look-up and had an effect."""

from __future__ import annotations

from collections import Counter

import pytest

from ledger.models import Attempt
from ledger.rules.looked_up import LookedUpKind, Record
from ledger.rules.states import State
from tests.crash.suite.effects import Effect, Effects
from tests.support import make
from tests.support.cast import Cast, cast

pytestmark = pytest.mark.django_db

MARK = "op-0"


@pytest.fixture
def people() -> Cast:
    return cast()


def blamed(attempt: Attempt, *, blind: bool = False, late: bool = False) -> Counter[str]:
    """The kinds of what is wrong, given an effect of this attempt just after its lease. `blind`: its look-ups
    may miss it; `late`: its sender was stopped, and came back."""
    over = attempt.lease_ended_at
    assert over is not None
    effect = Effect(MARK, "ch_1", "succeeded", "key", attempt.pk, "a1", over.timestamp() + 1)
    effects = Effects(
        attempt.tenant_id,
        (MARK,),
        blind=frozenset({MARK} if blind else ()),
        resumed={"a1": over.timestamp()} if late else {},
        found=(effect,),
    )
    return Counter(kind for kind, _ in effects.what_is_wrong(Counter()))


def cancelled_and_absent(people: Cast) -> Attempt:
    attempt = make.unknown(people.key, operation_key="mail:0")
    attempt = make.found_absent(make.cancelled(people.key, attempt))
    assert (attempt.state, attempt.failure) == (State.FAILED, "cancelled")
    return attempt


def test_an_effect_that_look_ups_can_see_may_not_end_as_a_failure(people: Cast) -> None:
    """Blamed for each *absent*, and for what came of them."""
    assert blamed(cancelled_and_absent(people)) == {"untrue": 3}


@pytest.mark.parametrize("excuse", ["blind", "late"])
def test_an_effect_that_no_look_up_could_see_is_nobodys_mistake(people: Cast, excuse: str) -> None:
    assert blamed(cancelled_and_absent(people), **{excuse: True}) == {}


@pytest.mark.parametrize("excuse", ["blind", "late"])
def test_what_is_said_to_have_failed_there_was_looked_at(people: Cast, excuse: str) -> None:
    failed = Record(reference="ch_1", content="same", state="failed")
    unknown = make.unknown(people.key, operation_key="mail:0")
    attempt = make.looked_up(unknown, LookedUpKind.FOUND, failed)
    assert (attempt.state, attempt.failure) == (State.FAILED, "failed_there")
    assert blamed(attempt, **{excuse: True}) == {"untrue": 1}
