"""R19: two equal names in one object: the first says deny, the last says allow, and two parsers disagree.

Kind: a document that means one thing to who checks it and another to who acts on it. Refused at every door,
at every depth, before it is hashed and before any authority is asked.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.models import Refusal
from tests.incidents import doors
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import Scene
from tests.support.api import slug_of

TWICE = {
    "top": ('{"worker_id": "w1", "worker_id": "w2"}', "top level"),
    "tenant": ('{"tenant": "t1", "worker_id": "w1", "tenant": "t2"}', "top level"),
    "arguments": (doors.as_args('{"to": "a", "to": "b"}'), "/args"),
    "unescaped": (doors.as_args('{"to": "a", "\\u0074o": "b"}'), "/args"),
    "equal values": (doors.as_args('{"to": "a", "to": "a"}'), "/args"),
    "in a list": (doors.as_args('{"lines": [1, {"deep": {"to": 1, "to": 2}}]}'), "/args/lines/1/deep"),
}


@pytest.mark.parametrize("body", TWICE)
def test_no_call_takes_it(scene: Scene, body: str) -> None:
    text, place = TWICE[body]
    details = doors.refused_by_every_call(scene, text.encode())
    assert all("appears twice" in detail and place in detail for detail in details)
    nothing_else_went_wrong(scene)


def test_it_is_refused_before_authority_is_asked(scene: Scene) -> None:
    body = b'{"operation_key": "k", "tool": "allowed", "tool": "secret.drop", "args": {}}'
    answer = scene.api.post_bytes("/intents", body)
    assert (answer.status_code, slug_of(answer)) == (400, "malformed-json")
    assert not Refusal.objects.exists()
    nothing_else_went_wrong(scene)


def test_names_that_only_look_alike_are_two(scene: Scene) -> None:
    """One letter and the same letter with its accent apart, another case: different names, both kept."""
    args = {"caf\u00e9": 1, "cafe\u0301": 2, "To": 3, "to": 4}
    assert scene.dispatched("k1", tool="note.add", args=args)["args"] == args
    nothing_else_went_wrong(scene)


def test_no_policy_says_deny_and_allow(scene: Scene, tmp_path: Path) -> None:
    deny_first = b'{"tools": {"pay": {"effect": "payment", "review": "always", "review": "on_unknown"}}}'
    doors.refused_as_a_file(scene, tmp_path, deny_first)
    doors.refused_as_a_file(scene, tmp_path, b'{"default": "refuse", "tools": {}, "tools": {}}')
    doors.refused_at_the_desk(scene, '{"version": "1", "version": "2"}')
    nothing_else_went_wrong(scene)


def test_a_record_that_failed_and_succeeded_is_no_record(scene: Scene) -> None:
    twice = b'{"data": [{"id": "msg_1", "status": "failed", "status": "sent"}], "next": null}'
    doors.never_read_as_an_answer(scene, twice)
    nothing_else_went_wrong(scene)
