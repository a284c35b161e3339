"""R56: nothing that matters changed, so the approval stands and nobody is asked a second time.

Kind: a permission bound to what does not matter.
"""

from ledger.models import Approval, Decision
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.helping import publish
from tests.incidents.scene import DEPLOY, Scene


def test_an_approval_outlives_a_crash_a_new_run_and_new_words(scene: Scene) -> None:
    held = scene.recorded("k1", DEPLOY, run="R1", step="3", actor="turn 1")
    scene.approve(held)
    asked = Decision.objects.count()
    # K1: the agent is killed. Its next life has another run, another trace and other words for it.
    again = scene.recorded("k1", DEPLOY, run="R2", step="1", task_id="trace-9", actor="turn 7")
    assert (again["attempt_id"], again["directive"]) == (held["attempt_id"], "dispatch")
    for wording in ("Deploys {version}", "Brings {version} to the customers"):
        publish(scene, {DEPLOY: {"summary": wording, "review_sla_s": 60, "start_within_s": 3600}})
        again = scene.recorded("k1", DEPLOY, run="R3")
        assert again["directive"] == "dispatch"
    leave = scene.dispatched(again, worker="w2")
    scene.report(leave, "succeeded", result_ref=scene.send(leave))
    assert (Decision.objects.count(), scene.effects()) == (asked, 1)
    assert Approval.objects.get().used_at is not None
    nothing_else_went_wrong(scene)


def test_the_same_policy_published_again_changes_nothing(scene: Scene) -> None:
    """Versions grow; what counts is the hash of the rule."""
    held = scene.recorded("k1", DEPLOY)
    scene.approve(held)
    for _ in range(3):
        publish(scene, {})
    assert scene.dispatched(held)["attempt_id"] == held["attempt_id"]
    nothing_else_went_wrong(scene)
