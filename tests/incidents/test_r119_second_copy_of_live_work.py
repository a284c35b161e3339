"""R119: the agent lives, and is cut off from the ledger for three minutes. Nobody may start its work again.

Kind: silence taken for death.
"""

from __future__ import annotations

from ledger.models import Attempt
from ledger.reconciliation import sweep_once
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import MAIL, NONE, PAYMENT, Body, Scene
from tests.support.api import slug_of


def heartbeat(scene: Scene, leave: Body) -> int:
    said = {"worker_id": "w1", "lease_epoch": leave["lease_epoch"]}
    return scene.api.post(f"/attempts/{leave['attempt_id']}/heartbeat", **said).status_code


def cut_off(scene: Scene, tool: str) -> Body:
    """Its lease runs out while it still has to send."""
    leave = scene.dispatched(tool=tool)
    assert heartbeat(scene, leave) == 200
    scene.leases_run_out()
    assert scene.state(leave) == "UNKNOWN"
    return leave


def test_the_effect_lands_late_and_its_receipt_later(scene: Scene) -> None:
    for number, tool in enumerate((PAYMENT, MAIL)):
        leave = scene.dispatched(f"k{number}", tool=tool)
        scene.leases_run_out()
        for seconds in (0, 10, 15):
            scene.time_passes(seconds)
            scene.asks(NONE)
            assert scene.state(leave) == "UNKNOWN"
            assert slug_of(scene.dispatch(leave, worker="w2")) == "in-flight"
        reference = scene.send(leave)
        assert heartbeat(scene, leave) == 409
        told = scene.report(leave, "succeeded", result_ref=reference).json()
        assert (told["state"], told["evidence_only"]) == ("OUTCOME_CONFIRMED", False)
        assert (len(scene.operation(leave)["attempts"]), scene.effects(f"k{number}")) == (1, 1)
    nothing_else_went_wrong(scene)


def test_staleness_alone_brings_no_second_attempt(scene: Scene) -> None:
    leave = cut_off(scene, MAIL)
    for _ in range(5):
        scene.time_passes(3600)
        scene.asks("down")
        sweep_once()
    assert (scene.state(leave), Attempt.objects.filter(operation=leave["operation_id"]).count()) == (
        "UNKNOWN",
        1,
    )
    assert scene.recorded("k1", MAIL)["directive"] == "reconcile"
    nothing_else_went_wrong(scene)


def test_after_another_attempt_its_receipt_is_evidence(scene: Scene) -> None:
    """Its claim is no longer the latest: what it says is kept, stops what is not sent yet, and is told apart
    from a second effect by the reference."""
    zombie = cut_off(scene, PAYMENT)
    scene.asks_until_settled(NONE)
    scene.time_passes(700)
    successor = scene.dispatched(zombie, worker="w2")
    assert (successor["attempt"], successor["idempotency_key"]) == (2, zombie["idempotency_key"])

    reference = scene.send(zombie)  # a zombie's own send cannot be prevented, only recognised
    told = scene.report(zombie, "succeeded", result_ref=reference).json()
    assert (told["evidence_only"], told["directive"]) == (True, "hold")
    first, second = scene.operation(zombie)["attempts"]
    assert (first["state"], second["state"]) == ("SUPERSEDED", "DISPATCHED")

    assert scene.send(successor) == reference, "the provider honours the key"
    done = scene.report(successor, "succeeded", result_ref=reference, worker_id="w2").json()
    assert (done["state"], done["directive"], scene.effects()) == ("OUTCOME_CONFIRMED", "done", 1)
    assert scene.listed() == [], "the same effect: the conflict is over"
    nothing_else_went_wrong(scene)


def test_a_receipt_in_time_keeps_the_second_attempt_from_being_sent(scene: Scene) -> None:
    """It reports while the new send is possible and nobody has asked for leave."""
    zombie = cut_off(scene, PAYMENT)
    scene.asks_until_settled(NONE)
    assert scene.state(zombie) == "FAILED_RETRYABLE"
    reference = scene.send(zombie)
    told = scene.report(zombie, "succeeded", result_ref=reference).json()
    assert told["state"] == "OUTCOME_CONFIRMED"
    scene.time_passes(700)
    assert slug_of(scene.dispatch(zombie, worker="w2")) == "already-done"
    assert scene.effects() == 1
    nothing_else_went_wrong(scene)
