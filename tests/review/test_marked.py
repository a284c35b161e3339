"""Characters that could deceive a person are marked, and nothing is lost by marking."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from review.queries.marked import Mark, Segment, deceptive_characters, marked_text


@pytest.mark.parametrize(
    ("text", "letter", "mark"),
    [
        ("pay\u202eAda", "\u202e", Mark.BIDIRECTIONAL),
        ("pay\u2066Ada", "\u2066", Mark.BIDIRECTIONAL),
        ("pay\u200bAda", "\u200b", Mark.INVISIBLE),
        ("pay\u00a0Ada", "\u00a0", Mark.INVISIBLE),
        ("pay\ufe0fAda", "\ufe0f", Mark.INVISIBLE),
        ("pay\U000e0041Ada", "\U000e0041", Mark.INVISIBLE),
        ("pay\x07Ada", "\x07", Mark.CONTROL),
        ("pay\rAda", "\r", Mark.CONTROL),
        ("p\u0430ypal", "\u0430", Mark.LOOK_ALIKE),  # Cyrillic a
        ("\uff41da", "\uff41", Mark.LOOK_ALIKE),  # full-width a
    ],
)
def test_what_deceives_is_marked(text: str, letter: str, mark: Mark) -> None:
    marked = [segment for segment in marked_text(text) if segment.mark is not Mark.NONE]
    assert [(segment.text, segment.mark) for segment in marked] == [(letter, mark)]
    assert f"U+{ord(letter):04X}" in marked[0].shown


@pytest.mark.parametrize(
    "text", ["", "plain text", "two\nlines\tand a tab", "Привет, мир", "Zoë paid 5 €", "日本語", "naïve café"]
)
def test_honest_text_is_left_alone(text: str) -> None:
    assert deceptive_characters(marked_text(text)) == 0


@given(st.text())
def test_the_segments_are_the_text(text: str) -> None:
    assert "".join(segment.text for segment in marked_text(text)) == text


def test_neighbours_stay_together() -> None:
    assert marked_text("ab\u200bcd") == (
        Segment("ab"),
        Segment("\u200b", Mark.INVISIBLE, "U+200B", "zero width space"),
        Segment("cd"),
    )
