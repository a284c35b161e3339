"""R17: writing and reading again changes numbers and text, so two sides disagree on a hash.

Kind: a hash over something that does not survive being kept. The canonical bytes are kept and are what is
hashed, sent and judged; the searchable copy decides nothing. What cannot survive exactly is refused.
"""

from __future__ import annotations

import hashlib
import json

import rfc8785

from ledger.client.answers import hash_of
from ledger.models import Attempt
from tests.incidents import doors
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import NOTE, Scene
from tests.support.api import slug_of

SAME: dict[str, tuple[str, ...]] = {
    '{"n":1000000}': ('{"n": 1e6}', '{"n": 1E+6}', '{"n": 1000000.0}', '{"n": 10e5}', ' {"n":1000000 }'),
    '{"n":0}': ('{"n": 0}', '{"n": -0}', '{"n": -0.0}', '{"n": 0.0}', '{"n": 0e9}'),
    '{"n":0.1}': ('{"n": 1e-1}', '{"n": 0.10}'),
    '{"n":5e-324}': ('{"n": 5E-324}',),
    '{"n":"caf\u00e9"}': ('{"n": "caf\\u00e9"}', '{"n": "caf\\u00E9"}'),
    '{"n":"\U0001f600"}': ('{"n": "\\ud83d\\ude00"}',),
    '{"n":"\u007f"}': ('{"n": "\\u007f"}', '{"n": "\\u007F"}'),
    '{"n":"a/b"}': ('{"n": "a\\/b"}', '{"n": "a\\u002fb"}'),
    '{"a":1,"b":1.5e-7,"\u20ac":3,"\U0001f600":4,"\ufb33":5}': (
        '{"\ufb33": 5, "\U0001f600": 4, "\u20ac": 3, "b": 0.00000015, "a": 1}',
    ),
}
"""Canonical text → other spellings of the same document; names are ordered by UTF-16."""

REFUSED = (
    "98765432109876543210.5", "0.1234567890123456789012", "9007199254740993", "9007199254740992", "1e-400",
    "0.30000000000000004441",
)  # fmt: skip


def test_every_spelling_is_one_document_from_the_call_to_the_send(scene: Scene) -> None:
    for number, (canonical, others) in enumerate(SAME.items()):
        expected = "v1:sha256:" + hashlib.sha256(canonical.encode()).hexdigest()
        for spelling in (canonical, *others):
            body = f'{{"operation_key": "k{number}", "tool": "{NOTE}", "args": {spelling}}}'
            answer = scene.api.post_bytes("/intents", body.encode())
            assert answer.status_code in {200, 201}, answer.text
            assert answer.json()["args_hash"] == expected, spelling
        leave = scene.dispatched(answer.json())
        assert rfc8785.dumps(leave["args"]) == canonical.encode(), "what is sent hashes to what was recorded"
        stored = Attempt.objects.get(pk=leave["attempt_id"])
        assert (stored.canonical_args, stored.args_hash) == (canonical.encode(), expected)
        assert hash_of(json.loads(canonical)) == expected, "agents hash as the ledger does"
    nothing_else_went_wrong(scene)


def test_what_cannot_survive_exactly_is_refused(scene: Scene) -> None:
    for literal in REFUSED:
        answer = scene.api.post_bytes("/intents", doors.as_args(f'{{"n": {literal}}}').encode())
        assert (answer.status_code, slug_of(answer)) == (400, "malformed-json"), literal
        assert "/args/n" in answer.json()["detail"]
    nothing_else_went_wrong(scene)


def test_letters_are_never_made_one_another(scene: Scene) -> None:
    """Text is not normalised: an accent apart is another document, and is so to the provider too."""
    scene.recorded("k1", NOTE, {"n": "caf\u00e9"})
    assert slug_of(scene.intent("k1", NOTE, {"n": "cafe\u0301"})) == "idempotency-key-reused"
    nothing_else_went_wrong(scene)
