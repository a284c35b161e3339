"""R08: NaN and Infinity are accepted by the parser and refused by the database, so the answer is a 500.

Kind: a token that one layer reads and the next cannot keep. Every door of JSON has the one strict reader:
calls, the desk, files of an administrator, answers of a provider.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.incidents import doors
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import Scene

TOKENS = ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e400"]


@pytest.mark.parametrize("token", TOKENS)
def test_no_call_takes_it(scene: Scene, token: str) -> None:
    for body in (f'{{"worker_id": {token}}}', doors.as_args(f'{{"deep": [{{"amount": {token}}}]}}')):
        details = doors.refused_by_every_call(scene, body.encode())
        assert all("is not a number" in detail or "beyond 2^53-1" in detail for detail in details)
    assert all("/args/deep/0/amount" in detail for detail in details), "it names the place"
    nothing_else_went_wrong(scene)


def test_no_person_and_no_file_brings_it_in(scene: Scene, tmp_path: Path) -> None:
    for token in TOKENS:
        doors.refused_as_a_file(scene, tmp_path, f'{{"tools": {{}}, "x": {token}}}'.encode())
    doors.refused_at_the_desk(scene, '{"version": NaN}')
    nothing_else_went_wrong(scene)


@pytest.mark.parametrize("token", ["NaN", "1e999"])
def test_what_a_provider_says_with_it_says_nothing(scene: Scene, token: str) -> None:
    doors.never_read_as_an_answer(scene, f'{{"data": [], "next": null, "took": {token}}}'.encode())
    nothing_else_went_wrong(scene)
