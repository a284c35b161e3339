"""R21: the same instant written with Z, +00:00 or a local offset hashes differently.

Kind: text that means the same and is not. Arguments are opaque: a text is what it is, nothing in them is read
as a time, so four spellings are four contents (the agent settles on one). Times the ledger itself reads are
instants: any offset, never without one.
"""

from __future__ import annotations

import pytest

from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import NOTE, Scene
from tests.support.api import slug_of

INSTANT = ("2099-03-29T02:30:00+01:00", "2099-03-29T01:30:00Z", "2099-03-29T01:30:00.000Z",
           "2099-03-29T01:30:00.000000+00:00")  # fmt: skip


def test_in_arguments_each_spelling_is_a_content_of_its_own(scene: Scene) -> None:
    spelled = [scene.recorded(f"k{number}", NOTE, {"due": text}) for number, text in enumerate(INSTANT)]
    assert len({about["args_hash"] for about in spelled}) == 4
    for about, text in zip(spelled, INSTANT, strict=True):
        assert scene.dispatched(about)["args"] == {"due": text}, "and is sent as it was written"
    reused = scene.intent("k0", NOTE, {"due": INSTANT[1]})
    assert slug_of(reused) == "idempotency-key-reused"
    nothing_else_went_wrong(scene)


def test_a_time_of_the_ledger_is_an_instant(scene: Scene) -> None:
    first = scene.recorded(expires_at=INSTANT[0])
    for text in INSTANT:
        assert scene.recorded(expires_at=text)["attempt_id"] == first["attempt_id"]
    assert scene.events(first, "attempt.posted_again") == [], "they all said the same"
    expires_at = scene.attempt(first).expires_at
    assert expires_at is not None
    assert expires_at.isoformat() == "2099-03-29T01:30:00+00:00"
    lease_until = scene.dispatched(first)["lease_until"]
    assert lease_until.endswith("Z")
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize("text", ["2099-03-29T02:30:00", "2099-03-29", "2099-03-29T02:30:00 Europe/Berlin"])
def test_a_time_of_no_place_is_refused(scene: Scene, text: str) -> None:
    """Naive, or one that a change of clocks skips or repeats in some place: only an offset says when."""
    answer = scene.intent(expires_at=text)
    assert (answer.status_code, slug_of(answer)) == (422, "invalid-request")
    assert "/expires_at" in answer.json()["detail"]
    nothing_else_went_wrong(scene)
