"""R38: the look-up must prove that it saw all pages before it says that something is not there.

Kind: a search that ended before its end.
"""

import json

import pytest

from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.helping import answers_of, asked_through_a_line, is_canary, publish, query_of
from tests.incidents.scene import MAIL, PAYMENT, Body, Scene
from tests.support.proxy import Fault, Honest, Reply, Request

PAGES: Body = {"next_page": {"pointer": "/next"}, "max_pages": 5}
OTHERS = [{"id": f"re_x{number}", "status": "succeeded", "metadata": {}} for number in range(50)]
BROKEN = Reply(500, b"{}")


def pages(*, follows: dict[str, str | None], broken: str = "") -> Fault:
    """Fifty records of others to a page, ours on page 3. `follows`: the next page of each, else one more."""

    def fault(request: Request, ask: Honest) -> Reply:
        if is_canary(request):
            return ask()
        page = query_of(request).get("at", "1")
        if page == broken:
            return BROKEN
        ours = json.loads(ask().body)["data"] if page == "3" else []
        following = follows.get(page, str(int(page) + 1))
        first = request.target.partition("&at=")[0]
        document = {"data": [*OTHERS, *ours], "next": f"{first}&at={following}" if following else None}
        return Reply(200, json.dumps(document).encode())

    return fault


THREE = pages(follows={"3": None})
NEVER_THE_THIRD = {
    "the second page answers 500": (pages(follows={"3": None}, broken="2"), 1),
    "the second page leads to the first": (pages(follows={"2": "1"}), 2),
}
ENDLESS = {
    "its pages go in a circle": pages(follows={"2": "1"}),
    "it has too many pages": lambda request, ask: (
        ask() if is_canary(request) else without_ours(pages(follows={})(request, ask))
    ),
}


def without_ours(reply: Reply | None) -> Reply:
    """Ours is further on than anybody may read."""
    assert reply is not None
    document = json.loads(reply.body)
    return Reply(200, json.dumps({**document, "data": OTHERS}).encode())


@pytest.mark.parametrize("tool", [PAYMENT, MAIL])
def test_it_is_found_on_the_third_page(scene: Scene, tool: str) -> None:
    lost = scene.unknown(tool=tool)
    with asked_through_a_line(scene, tool, **PAGES) as line:
        line.fault = THREE
        scene.time_passes()
        scene.asks()
        assert len(line.requests) == 3
    assert (scene.state(lost), scene.effects()) == ("OUTCOME_CONFIRMED", 1)
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize("tool", [PAYMENT, MAIL])
@pytest.mark.parametrize("name", NEVER_THE_THIRD)
def test_half_a_listing_is_never_absent(scene: Scene, name: str, tool: str) -> None:
    lost = scene.unknown(tool=tool)
    with asked_through_a_line(scene, tool, **PAGES) as line:
        line.fault, seen = NEVER_THE_THIRD[name]
        scene.asks_until_settled()
        assert {answer.answer for answer in answers_of(lost)} == {"unavailable"}
        assert len(line.requests) <= 4 * (seen + 1)
        assert scene.state(lost) == "UNKNOWN"
        line.fault = THREE
        scene.time_passes()
        scene.asks()
    assert (scene.state(lost), scene.effects()) == ("OUTCOME_CONFIRMED", 1)
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize("why", ENDLESS)
def test_a_listing_without_an_end_is_not_read_for_ever(scene: Scene, why: str) -> None:
    """The provider answers and decides nothing: after `max_checks` such answers a person is asked."""
    publish(scene, {PAYMENT: {"max_checks": 3}})
    lost = scene.unknown()
    with asked_through_a_line(scene, **PAGES) as line:
        line.fault = ENDLESS[why]
        for _ in range(6):
            scene.time_passes()
            scene.asks()
        assert all(answer.detail == why for answer in answers_of(lost))
        assert len(line.requests) <= 3 * PAGES["max_pages"]
    assert (scene.state(lost), scene.on_desk(lost).reason) == ("MANUAL_REVIEW", "unresolved")
    nothing_else_went_wrong(scene)
    _a_person_asks_again(scene, lost)


def _a_person_asks_again(scene: Scene, lost: Body) -> None:
    """What a person re-checks is found once its listing can be read to the end."""
    from review import decisions
    from tests.support import make

    decisions.recheck(scene.people.operator, make.item_of(scene.attempt(lost)).pk, why="pages were mended")
    scene.asks()
    assert (scene.state(lost), scene.effects()) == ("OUTCOME_CONFIRMED", 1)
    nothing_else_went_wrong(scene)
