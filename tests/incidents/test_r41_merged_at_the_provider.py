"""R41: the provider merged the account, and the old id answers 404, or as another.

Kind: a name that means something else by now.

By our rules a record with the same content confirms. So a look-up that asks for one object by its id says in
its configuration (`match_where`) that only this id is meant; then another's answer is no word about it.
"""

import json
from typing import Any

import pytest

from ledger.lifecycle import DecisionRefused
from ledger.models import Decision
from review import decisions
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.helping import answers_of, asked_through_a_line, is_canary
from tests.incidents.scene import Body, Scene
from tests.support import make
from tests.support.proxy import Fault, Honest, Reply, Request

ARGS = {"amount": 40, "currency": "EUR", "customer": "c-1"}
SURVIVOR = {"id": "p-2", "status": "succeeded", **ARGS, "customer": "c-2"}
MOVED: dict[str, Reply] = {
    "404": Reply(404, b"{}"),
    "410": Reply(410, b"{}"),
    "301": Reply(301, b"", {"Location": "/records/p-2"}),
    "a pointer to the survivor": Reply(200, b'{"merged_into": "p-2"}'),
    "the survivor under its own id": Reply(200, json.dumps(SURVIVOR).encode()),
}
MERGED = Reply(200, json.dumps({**SURVIVOR, "id": "p-1"}).encode())


def merged(old: Reply, *, survivor: Body = SURVIVOR) -> Fault:
    def fault(request: Request, ask: Honest) -> Reply:
        if is_canary(request):
            return ask()
        return Reply(200, json.dumps(survivor).encode()) if request.target.endswith("p-2") else old

    return fault


def one_object(line_url: str) -> dict[str, Any]:
    """The record is asked for by its own id."""
    return {
        "request": {"url": f"{line_url}/records/{{provider_request_id}}"},
        "matches": "",
        "match_where": {"/id": "{provider_request_id}"},
        "content": {"/amount": "/amount", "/currency": "/currency", "/customer": "/customer"},
        "absent_status": [404, 410],
    }


def sent(scene: Scene) -> Body:
    """DISPATCHED target=c-1 ref=p-1, and the answer is lost."""
    lost = scene.unknown(args=ARGS)
    scene.accepted(lost, "p-1")
    return lost


@pytest.mark.parametrize("name", MOVED)
def test_the_old_id_proves_nothing_and_a_person_names_the_survivor(scene: Scene, name: str) -> None:
    lost = sent(scene)
    with asked_through_a_line(scene) as line, asked_through_a_line(scene, **one_object(line.url)):
        line.fault = merged(MOVED[name], survivor={**SURVIVOR, "customer": "c-1"})
        scene.asks_until_settled()
        assert scene.state(lost) in ("UNKNOWN", "MANUAL_REVIEW")
        assert scene.on_desk(lost).reason in ("unknown", "conflicting_evidence")
        assert "confirmed" not in {answer.row for answer in answers_of(lost)}
        _relinked(scene, lost, "p-2")
        scene.time_passes()  # one that answers nothing readable is asked only now and then
        scene.asks()
        assert line.requests[-1].target == "/records/p-2"
    told = scene.operation(lost)
    assert (told["state"], told["result_ref"], told["attempts"][0]["confirmed_by"]) == (
        "OUTCOME_CONFIRMED",
        "p-2",
        "lookup",
    )
    assert told["attempts"][0]["args_hash"] == lost["args_hash"]
    nothing_else_went_wrong(scene)


def test_a_record_that_names_another_customer_is_for_a_person(scene: Scene) -> None:
    lost = sent(scene)
    with asked_through_a_line(scene) as line, asked_through_a_line(scene, **one_object(line.url)):
        line.fault = merged(MERGED)
        scene.asks_until_settled()
        assert (scene.state(lost), scene.on_desk(lost).reason) == ("MANUAL_REVIEW", "hash_mismatch")
        nothing_else_went_wrong(scene)
        _what_goes_to_the_survivor_is_a_new_attempt(scene, lost)
        nothing_else_went_wrong(scene)


def _relinked(scene: Scene, lost: Body, reference: str) -> None:
    """The old reference, the new one and the reason are kept."""
    item = make.item_of(scene.attempt(lost))
    decisions.relink_record(scene.people.operator, item.pk, why="p-1 was merged into it", reference=reference)
    decision = Decision.objects.get(item=item)
    assert decision.data == {"reference": "p-2", "before": "p-1"}
    assert decision.why == "p-1 was merged into it"
    told = scene.events(lost, "review.decided")[-1]
    assert (told["before"], told["reference"], told["why"]) == ("p-1", "p-2", "p-1 was merged into it")


def _what_goes_to_the_survivor_is_a_new_attempt(scene: Scene, lost: Body) -> None:
    """With other arguments, held, linked to the old one, and not to be approved before that is decided."""
    item = make.item_of(scene.attempt(lost))
    typed = json.dumps({**ARGS, "customer": "c-2"})
    decisions.relink_arguments(scene.people.operator, item.pk, why="c-1 is c-2 now", typed=typed)
    old, new = scene.operation(lost)["attempts"]
    assert (old["args_hash"], old["state"]) == (lost["args_hash"], "MANUAL_REVIEW")
    assert (new["descends_from"], new["state"], new["sent"]) == (lost["attempt_id"], "MANUAL_REVIEW", False)
    assert new["args_hash"] != lost["args_hash"]
    with pytest.raises(DecisionRefused, match="it must be settled first"):
        scene.approve(new)
