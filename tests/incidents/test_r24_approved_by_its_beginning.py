"""R24: an approval for "exactly this" compares a projection cut to 512 characters and 32 arguments.

Kind: the compared thing is less than the approved thing. Every comparison is of the whole canonical hash: at
the intent, at leave, in the digest of a vote; and a page compares what it does not show in full as well.
"""

from __future__ import annotations

import pytest

from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import DEPLOY, Body, Scene
from tests.ledger.ingest.steps import hash_of
from tests.support import make
from tests.support.api import slug_of

LONG = "x" * 600

PAIRS: dict[str, tuple[Body, Body]] = {
    "a tail": ({"cmd": LONG}, {"cmd": LONG + "; rm -rf /"}),
    "the last letter": ({"cmd": LONG}, {"cmd": LONG[:-1] + "y"}),
    "a 33rd argument": (
        {"argv": [str(number) for number in range(32)]},
        {"argv": [str(number) for number in range(33)]},
    ),
    "an empty one": ({"argv": ["cp", "", "/srv"]}, {"argv": ["cp", "/srv"]}),
    "a control character": ({"cmd": "xy"}, {"cmd": "x\u0001y"}),
    "an invisible character": ({"cmd": "xy"}, {"cmd": "x\u200by"}),
    "a look-alike": ({"payee": "paypal"}, {"payee": "p\u0430ypal"}),
    "a kind of value": ({"amount": 1}, {"amount": "1"}),
    "null and absent": ({"cmd": "x"}, {"cmd": "x", "force": None}),
    "far behind padding": ({"pad": " " * 60_000, "to": "a"}, {"pad": " " * 60_000, "to": "b"}),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_an_approval_covers_nothing_but_the_whole(scene: Scene, pair: str) -> None:
    approved, other = PAIRS[pair]
    first = scene.recorded("k1", DEPLOY, approved)
    scene.approve(first)
    assert scene.recorded("k1", DEPLOY, approved)["directive"] == "dispatch"
    meant_otherwise = scene.dispatch(first, args_hash=hash_of(other))
    assert (meant_otherwise.status_code, slug_of(meant_otherwise)) == (409, "args-changed")
    reused = scene.intent("k1", DEPLOY, other)
    assert (reused.status_code, slug_of(reused)) == (422, "idempotency-key-reused")
    held = reused.json()
    assert (held["state"], held["directive"]) == ("MANUAL_REVIEW", "hold")
    assert scene.dispatch(held).status_code == 409
    elsewhere = scene.recorded("k2", DEPLOY, other)
    assert elsewhere["directive"] == "hold", "an approval is of one operation"
    (compared,) = scene.item_page(held).comparisons
    assert compared.verdict == "different"
    assert compared.changes
    nothing_else_went_wrong(scene)


def test_votes_for_different_contents_never_add_up(scene: Scene) -> None:
    """Two people who each saw another content have approved neither."""
    two = {"effect": "deployment", "review": "always", "approvals": 2}
    make.policy(scene.people.tenant, tools={DEPLOY: two})
    first = scene.recorded("k1", DEPLOY, PAIRS["a tail"][0])
    second = scene.intent("k1", DEPLOY, PAIRS["a tail"][1]).json()
    scene.vote(scene.people.approver, first)
    scene.vote(scene.people.second_approver, second)
    for about in (first, second):
        assert scene.dispatch(about).status_code == 409
        assert not scene.attempt(about).approvals.exists()
    nothing_else_went_wrong(scene)
