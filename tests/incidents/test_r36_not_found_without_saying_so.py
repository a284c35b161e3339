"""R36: "not found" comes in many dresses; only what the configuration lists means that it does not exist.

Kind: an answer that says nothing, read as "it is not there".

Our rules have no attention of its own for credentials: a refused key is *unavailable* like an outage, or a
canary that is not seen, and says so in the stored answer.
"""

import threading

import pytest

from ledger.reconciliation import asking
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.helping import answers_of, asked_through_a_line, but_not_the_canary
from tests.incidents.scene import MAIL, PAYMENT, Body, Scene, configuration
from tests.support.proxy import Fault, Honest, Proxy, Reply, Request, answering, down, truncated

LOGIN = {"Location": "https://login.example.org/"}

ANSWERS: dict[str, tuple[Fault, str]] = {
    "404": (answering(404), "404"),
    "410": (answering(410), "410"),
    "an empty list": (answering(200, b"[]"), "no list"),
    "an empty object": (answering(200, b"{}"), "no list"),
    "null": (answering(200, b"null"), "no list"),
    "null for a list": (answering(200, b'{"data": null}'), "no list"),
    "no content": (answering(204, b""), "204"),
    "a page": (answering(200, b"<html>Not found</html>", Content_Type="text/html"), "cannot be read"),
    "nothing at all": (answering(200, b""), "cannot be read"),
    "half of it": (truncated, ""),
    "moved": (answering(301, b"", **LOGIN), "301"),
    "found elsewhere": (answering(302, b"", **LOGIN), "302"),
    "sign in": (answering(401), "refuses the key"),
    "forbidden": (answering(403), "refuses the key"),
    "slow down": (answering(429, Retry_After="0"), "429"),
    "broken": (answering(500), "500"),
    "cut": (down, ""),
}


@pytest.mark.parametrize("tool", [PAYMENT, MAIL])
def test_it_is_no_word_about_the_effect(scene: Scene, tool: str) -> None:
    """All of these, one after the other, about an operation of their own."""
    for name, (fault, word) in ANSWERS.items():
        lost = scene.unknown(name, tool=tool)
        with asked_through_a_line(scene, tool) as line:
            line.fault = but_not_the_canary(fault)
            for _ in range(2):
                scene.time_passes()
                scene.asks()
        answers = answers_of(lost)
        assert {(answer.answer, answer.row) for answer in answers} == {("unavailable", "unavailable")}, name
        assert word in answers[-1].detail
        assert scene.dispatch(lost, worker="w2").status_code == 409
        scene.time_passes()
        scene.asks()
        assert (scene.state(lost), scene.effects(name)) == ("OUTCOME_CONFIRMED", 1)
    nothing_else_went_wrong(scene)


def test_an_answer_that_does_not_come(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "LOOK_UP_S", 0.3)
    come = threading.Event()

    def slow(_: Request, __: Honest) -> Reply:
        come.wait(20)
        return Reply(200, b'{"data": []}')

    lost = scene.unknown()
    with asked_through_a_line(scene) as line:
        line.fault = slow
        scene.time_passes()
        scene.asks()
        come.set()
    assert (scene.state(lost), answers_of(lost)[-1].answer) == ("UNKNOWN", "unavailable")
    _found_in_the_end(scene, lost)


def test_a_line_that_does_not_speak_tls(scene: Scene) -> None:
    lost = scene.unknown()
    with Proxy(scene.provider.url) as line:
        plain = configuration(line.url, PAYMENT)["request"]["url"]
        request = {"method": "GET", "url": plain.replace("http://", "https://")}
        with asked_through_a_line(scene, request=request):
            scene.asks_until_settled()
    assert {answer.answer for answer in answers_of(lost)} == {"unavailable"}
    _found_in_the_end(scene, lost)


@pytest.mark.parametrize("fault", [answering(401), answering(403), answering(404)])
def test_where_the_known_object_is_not_seen_either_absent_is_not_believed(scene: Scene, fault: Fault) -> None:
    lost = scene.unknown()
    with asked_through_a_line(scene, absent_status=[404]) as line:
        line.fault = lambda request, ask: (
            fault(request, ask) if request.target.endswith("/canary") else answering(404)(request, ask)
        )
        scene.asks_until_settled()
        last = answers_of(lost)[-1]
        assert (scene.state(lost), last.answer, last.row) == ("UNKNOWN", "absent", "unavailable")
        assert "this key may not look" in last.detail
    _found_in_the_end(scene, lost)


@pytest.mark.parametrize("fault", [answering(404), answering(200, b'{"data": [], "next": null}')])
def test_what_the_configuration_lists_is_an_absent(scene: Scene, fault: Fault) -> None:
    lost = scene.unknown(how="drop_before")
    with asked_through_a_line(scene, absent_status=[404]) as line:
        line.fault = but_not_the_canary(fault)
        scene.asks_until_settled()
        assert (scene.state(lost), scene.effects()) == ("FAILED_RETRYABLE", 0)
    nothing_else_went_wrong(scene)


def _found_in_the_end(scene: Scene, lost: Body) -> None:
    """Nothing was sent again meanwhile, and its first whole answer settles it."""
    assert scene.dispatch(lost, worker="w2").status_code == 409
    scene.time_passes()
    scene.asks()
    assert (scene.state(lost), scene.effects()) == ("OUTCOME_CONFIRMED", 1)
    nothing_else_went_wrong(scene)
