"""R39: the look-up finds more than one, and nobody may pick one of them.

Kind: two answers to a question that has one.

Not built: the scheduled reverse check (what the provider lists, minus what the ledger knows). Our rules do
not have it, and look-ups ask by the marks of one operation, so a listing of everything would be a new part of
every adapter. What no attempt owns is seen only where it carries an operation's correlation id.
"""

from typing import Any

import pytest
from django.test import Client

from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.helping import answers_of, asked_through_a_line, but_not_the_canary
from tests.incidents.scene import MAIL, Body, Scene
from tests.support import make
from tests.support.proxy import Request, altered

SECOND: dict[str, Body] = {
    "the same again": {},
    "with another amount": {"amount": 4000},
    "that failed there": {"status": "failed"},
    "that is in progress": {"status": "pending"},
}


def and_another(**changed: Any) -> Any:
    """The provider has a second record with the same mark, made at another time."""

    def change(_: Request, document: Any) -> Any:
        return {**document, "data": [*document["data"], {**document["data"][0], "id": "e-2", **changed}]}

    return but_not_the_canary(altered(change))


@pytest.mark.parametrize("name", SECOND)
def test_a_person_sees_both(scene: Scene, name: str) -> None:
    lost = scene.unknown()
    with asked_through_a_line(scene) as line:
        line.fault = and_another(**SECOND[name])
        scene.asks_until_settled()
        assert (scene.state(lost), scene.on_desk(lost).reason) == ("MANUAL_REVIEW", "several_matches")
        records = answers_of(lost)[-1].records
        assert [record["reference"] for record in records][1] == "e-2"
        assert all("amount" in record["data"] for record in records)
        _both_are_on_the_page(scene, make.item_of(scene.attempt(lost)).pk, [r["reference"] for r in records])
        _nothing_is_picked_later(scene, lost)
        nothing_else_went_wrong(scene)


def test_a_receipt_settles_and_the_second_is_not_looked_for(scene: Scene) -> None:
    """What the missing reverse check would find: nobody asks about what is confirmed."""
    leave, reference = scene.sent(tool=MAIL)
    with asked_through_a_line(scene, MAIL) as line:
        line.fault = and_another()
        scene.report(leave, "succeeded", result_ref=reference)
        scene.time_passes()
        scene.recover()
        assert (scene.state(leave), scene.listed(), line.requests) == ("OUTCOME_CONFIRMED", [], [])
        nothing_else_went_wrong(scene)


def test_without_a_receipt_a_mail_that_went_out_twice_is_two(scene: Scene) -> None:
    lost = scene.unknown(tool=MAIL)
    with asked_through_a_line(scene, MAIL) as line:
        line.fault = and_another()
        scene.time_passes()
        scene.asks()
        assert scene.on_desk(lost).reason == "several_matches"
        nothing_else_went_wrong(scene)


def test_one_record_on_two_pages_is_one(scene: Scene) -> None:
    lost = scene.unknown()
    with asked_through_a_line(scene) as line:
        line.fault = but_not_the_canary(
            altered(lambda _, document: {**document, "data": document["data"] * 2})
        )
        scene.time_passes()
        scene.asks()
    assert (scene.state(lost), scene.effects()) == ("OUTCOME_CONFIRMED", 1)
    nothing_else_went_wrong(scene)


def _both_are_on_the_page(scene: Scene, item_id: str, references: list[str]) -> None:
    browser = Client()
    browser.force_login(scene.people.operator, backend="django.contrib.auth.backends.ModelBackend")
    page = browser.get(f"/review/{item_id}/").content.decode()
    assert all(reference in page for reference in references)


def _nothing_is_picked_later(scene: Scene, lost: dict[str, Any]) -> None:
    """Neither a late receipt nor leave chooses one of the two."""
    told = scene.report(lost, "succeeded", result_ref="e-2").json()
    assert (told["state"], told["evidence_only"], told["directive"]) == ("MANUAL_REVIEW", True, "hold")
    assert scene.dispatch(lost, worker="w2").status_code == 409
