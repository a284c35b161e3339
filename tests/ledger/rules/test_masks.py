"""What a mask hides: at its pointers, and the same values in what others say."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ledger.rules.canonical import canonical_bytes
from ledger.rules.masks import MASKED, Veil, hides, masked, present, veil_of

ARGS: dict[str, Any] = {
    "card": {"number": "4242424242424242", "pin": 1234, "name": "Ada"},
    "keys": ["first-secret", "second"],
    "a/b~c": 'quote " and é',
    "flag": True,
    "none": None,
}
MASK = ("/card/number", "/card/pin", "/keys/0", "/a~1b~0c", "/flag", "/gone/deep")
secrets = st.text(min_size=6, max_size=12).filter(lambda text: text not in MASKED and MASKED not in text)


def test_only_what_is_there_is_masked_and_nothing_else_changes() -> None:
    assert present(ARGS, MASK) == MASK[:5]
    hidden = masked(ARGS, MASK)
    assert hidden["card"] == {"number": MASKED, "pin": MASKED, "name": "Ada"}
    assert (hidden["keys"], hidden["a/b~c"], hidden["none"]) == ([MASKED, "second"], MASKED, None)
    assert ARGS["card"]["number"].startswith("4242"), "the arguments themselves stay"


def test_a_mask_holds_inside_and_around_what_it_names() -> None:
    assert hides(["/card/number"], "/card/number/0")
    assert hides(["/card/number"], "/card")
    assert not hides(["/card/number"], "/card/name")
    assert not hides(["/card"], "/cards")


def test_the_same_values_are_hidden_in_a_record() -> None:
    veil = veil_of(ARGS, MASK)
    record = {
        "id": "re_1",
        "pin": 1234,
        "text": "paid with 4242424242424242",
        "ok": True,
        "deep": ["first-secret"],
    }
    assert veil.over(record) == {
        "id": "re_1", "pin": MASKED, "text": f"paid with {MASKED}", "ok": True, "deep": [MASKED],
    }  # fmt: skip
    assert veil_of({"n": 824193}, ["/n"]).over_text("with 824193.") == f"with {MASKED}."
    assert veil_of(None, MASK) == veil_of(ARGS, ()) == Veil()


def test_the_beginning_of_a_masked_text_is_hidden_where_a_text_was_cut() -> None:
    veil = veil_of(ARGS, MASK)
    whole = f"declined: {ARGS['card']['number']}"
    assert veil.over_text(whole[:-1]) == veil.over_text(whole[:-10]) == f"declined: {MASKED}"
    assert veil.over({"text": whole[:-1]}) == {"text": f"declined: {MASKED}"}
    assert veil.over_text(whole[:-11]) == "declined: 42424", "too short to be looked for"
    assert veil.over_text(f"{whole[:-1]} was") == f"{whole[:-1]} was", "only the end was cut"


def test_an_endless_masked_text_is_hidden_where_a_kept_text_ends() -> None:
    secret = "a" * 100_000 + "b"
    veil = veil_of({"s": secret}, ["/s"])
    assert veil.over_text("said: " + secret[:4_090]) == f"said: {MASKED}"


def test_a_text_is_hidden_as_answers_in_ascii_spell_it() -> None:
    veil = veil_of({"s": "Renée Dupont"}, ["/s"])
    assert veil.over_text(r"for Ren\xe9e Dupont") == f"for {MASKED}"
    assert veil.over_text(r"550 Ren\xc3\xa9e Dupont") == f"550 {MASKED}"


@given(secrets, st.text(max_size=5), st.text(max_size=5))
def test_no_spelling_of_a_masked_text_is_left(secret: str, before: str, after: str) -> None:
    veil = veil_of({"s": secret}, ["/s"])
    said = {"message": before + secret + after}
    for text in (json.dumps(said), canonical_bytes(said).decode(errors="replace"), before + secret + after):
        shown = veil.over_text(text)
        assert secret not in shown.replace(MASKED, "\0")
