"""A new send never widens credentials: whatever both may use, and nothing either may not."""

from __future__ import annotations

from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st

from ledger.rules.authority import covers_tool
from ledger.rules.scopes import narrowed

words = st.text(alphabet="ab.*?", max_size=5)
scopes = st.lists(words.map(lambda glob: f"tool:{glob}"), max_size=4)
tools = st.text(alphabet="ab.", max_size=5)


@given(attempt=scopes, key=scopes, tool=tools)
def test_what_is_left_never_covers_what_either_does_not(
    attempt: list[str], key: list[str], tool: str
) -> None:
    if covers_tool(narrowed(attempt, key), tool):
        assert covers_tool(attempt, tool)
        assert covers_tool(key, tool)


@given(attempt=scopes, key=scopes)
def test_narrowing_needs_no_order_and_only_narrows(attempt: list[str], key: list[str]) -> None:
    left = narrowed(attempt, key)
    assert left == narrowed(key, attempt)
    assert set(left) <= {*attempt, *key}
    assert narrowed(left, left) == left


@given(held=scopes)
def test_the_same_scopes_stay(held: list[str]) -> None:
    assert narrowed(held, held) == sorted(set(held))


@given(attempt=scopes, exact=tools)
def test_an_exact_scope_stays_exactly_where_the_other_side_covers_it(attempt: list[str], exact: str) -> None:
    """The globs as the standard library reads them."""
    covered = any(fnmatchcase(exact, glob.removeprefix("tool:")) for glob in attempt if "?" not in glob)
    assert (f"tool:{exact}" in narrowed(attempt, [f"tool:{exact}"])) == covered


def test_a_target_never_answers_for_a_tool() -> None:
    assert narrowed(["tool:*"], ["target:*"]) == []
    assert narrowed(["tool:mail.*", "target:*"], ["tool:*", "target:eu-*"]) == ["target:eu-*", "tool:mail.*"]
