"""R121: the agent comes back from a snapshot before steps 3 to 5 and does them again.

Kind: a memory older than the facts.
"""

from __future__ import annotations

from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import MAIL, Body, Scene
from tests.ledger.ingest.steps import hash_of
from tests.support.api import slug_of

RUN = "night-7"


def done(scene: Scene, step: int, text: str) -> Body:
    key, args = f"{RUN}:{step}", {"to": text}
    leave = scene.dispatched(scene.recorded(key, MAIL, args, run=RUN, step=str(step)))
    told: Body = scene.report(leave, "succeeded", result_ref=scene.send(leave)).json()
    return told


def remember(scene: Scene, step: int, state: str) -> Body:
    """What the agent would go on from after this step."""
    stored = scene.api.put(
        f"/runs/{RUN}/checkpoint",
        sequence=step,
        reference=f"s3://{state}",
        content_hash=hash_of({"s": state}),
    )
    body: Body = stored.json()
    return body | {"status_code": stored.status_code}


def test_what_was_done_is_answered_and_what_differs_is_held(scene: Scene) -> None:
    earlier: dict[int, Body] = {}
    for step in (1, 2, 3, 4, 5):
        earlier[step] = done(scene, step, f"step-{step}@example.org")
        assert remember(scene, step, f"state-{step}")["status_code"] == 200
    effects = scene.all_effects()

    for step in (3, 5):
        again = scene.intent(
            f"{RUN}:{step}", MAIL, {"to": f"step-{step}@example.org"}, run=RUN, step=str(step)
        )
        assert (again.status_code, again.headers["Idempotent-Replayed"]) == (200, "true")
        assert (again.json()["directive"], again.json()["result_ref"]) == (
            "done",
            earlier[step]["result_ref"],
        )
        assert slug_of(scene.dispatch(again.json(), worker="resumed")) == "already-done"
    other = scene.intent(f"{RUN}:4", MAIL, {"to": "step-4@example.org "}, run=RUN, step="4")
    assert (other.status_code, slug_of(other)) == (422, "idempotency-key-reused")
    assert (other.json()["state"], other.json()["directive"]) == ("MANUAL_REVIEW", "done")
    assert scene.on_desk(other.json()).reason == "arguments_changed"
    assert slug_of(scene.dispatch(other.json(), worker="resumed")) == "already-done"
    assert scene.all_effects() == effects == 5
    nothing_else_went_wrong(scene)


def test_it_is_told_that_it_is_behind(scene: Scene) -> None:
    for step in (1, 2, 3, 4, 5):
        done(scene, step, f"step-{step}@example.org")
        remember(scene, step, f"state-{step}")
    assert scene.api.get(f"/runs/{RUN}").json()["checkpoint"]["sequence"] == 5
    for step in (3, 5):
        behind = remember(scene, step, "written-by-the-resumed-one")
        assert (behind["status_code"], behind["type"]) == (409, "/problems/checkpoint-not-growing")
        assert behind["detail"] == "You are behind: the last known run checkpoint is 5, s3://state-5."
        newest = scene.api.get(f"/runs/{RUN}").json()["checkpoint"]
        assert (newest["sequence"], newest["reference"]) == (5, "s3://state-5")
        assert behind["checkpoint"] == newest
    assert remember(scene, 5, "state-5")["status_code"] == 200, "its own last one again is no step back"
    assert remember(scene, 6, "state-6")["status_code"] == 200
    nothing_else_went_wrong(scene)
