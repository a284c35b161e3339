"""R125: the mail is out, a step after it fails, and each cycle sends the mail again.

Kind: an error after success taken for a failure of what succeeded. What happened stays happened whatever
breaks after it; what broke is tried again by itself, and keeps no other work waiting. Where the error is
inside the transaction that confirms, nothing is confirmed, and the provider is asked again: it is never sent
again.
"""

from __future__ import annotations

from typing import NoReturn

import pytest

from ledger import lifecycle, outbox
from ledger.models import Attempt
from ledger.reconciliation import resend, runner
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import OWN, Scene

CYCLES = 100


def broken(*_: object, **__: object) -> NoReturn:
    raise RuntimeError("the step after success is broken")


def cycles(scene: Scene, count: int = CYCLES) -> None:
    """Everything that recovers, again and again, with all that waits made due."""
    for _ in range(count):
        Attempt.objects.filter(state="UNKNOWN").update(lookup_lease_until=None)
        scene.time_passes()
        scene.recover()


def test_what_was_found_stays_found(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = scene.unknown("k1"), scene.unknown("k2")
    monkeypatch.setattr(runner, "note_answer", broken)
    cycles(scene)
    for about in (first, second):
        assert scene.state(about) == "OUTCOME_CONFIRMED"
        assert scene.history(about).count("attempt.confirmed") == 1
    assert scene.all_effects() == 2
    nothing_else_went_wrong(scene)


def test_what_the_ledger_sent_is_not_sent_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resend, "note_answer", broken)
    intents = [scene.recorded(f"k{number}", OWN) for number in range(3)]
    cycles(scene)
    assert [scene.state(about) for about in intents] == ["OUTCOME_CONFIRMED"] * 3
    assert len(scene.provider.requests("POST")) - scene.posts_before == 3
    assert scene.all_effects() == 3
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize("step", ["plan_deliveries", "enqueue"])
def test_what_cannot_be_confirmed_is_asked_about_and_never_sent_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(outbox, step, broken)
        intent = scene.recorded("k1", OWN)
        scene.recover()
        assert scene.effects("k1") == 1
        scene.leases_run_out()
        cycles(scene, 10)
        assert scene.state(intent) == "UNKNOWN", "its confirmation was rolled back, the effect is there"
        assert scene.effects("k1") == 1
        assert len(scene.provider.requests("POST")) - scene.posts_before == 1
    cycles(scene, 2)
    assert (scene.state(intent), scene.attempt(intent).confirmed_by) == ("OUTCOME_CONFIRMED", "lookup")
    assert scene.effects("k1") == 1
    nothing_else_went_wrong(scene)


def test_one_that_always_breaks_keeps_no_other_waiting(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    from ledger.reconciliation import sweep

    poison, others = scene.dispatched("k1"), [scene.dispatched(f"k{number}") for number in range(2, 5)]
    ended = lifecycle.end_send_lease

    def end(*, attempt_id: str) -> bool:
        return broken() if attempt_id == poison["attempt_id"] else ended(attempt_id=attempt_id)

    with monkeypatch.context() as patched:
        patched.setattr(sweep, "end_send_lease", end)
        scene.leases_run_out()
        assert [scene.state(about) for about in others] == ["UNKNOWN"] * 3
        assert scene.state(poison) == "DISPATCHED"
    scene.recover()
    assert scene.state(poison) == "UNKNOWN"
    nothing_else_went_wrong(scene)


def test_the_agents_next_life_is_told_that_it_is_done(scene: Scene) -> None:
    """Its own clean-up fails after the receipt: started again it is told the result, however often."""
    done = scene.confirmed("k1")
    for number in range(10):
        again = scene.recorded("k1")
        assert (again["directive"], again["result_ref"]) == ("done", done["result_ref"])
        assert scene.dispatch(again, worker=f"life-{number}").status_code == 409
    assert scene.all_effects() == 1
    nothing_else_went_wrong(scene)
