"""The lines of a spool, whatever became of the disk they were on."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.client.records import Kept, Report, done_line, keep_line, next_in_turn, read_spool

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
reports = st.builds(
    Report,
    st.sampled_from(["/attempts/a/outcome", "/attempts/a/provider-request", "/attempts/b/outcome"]),
    st.dictionaries(st.text(), json_values, max_size=3),
)
spools = st.lists(reports, max_size=6).map(
    lambda listed: tuple(Kept(number, report) for number, report in enumerate(listed, 1))
)


def written(spool: tuple[Kept, ...]) -> list[bytes]:
    return [keep_line(kept) for kept in spool]


@given(spools, st.sets(st.integers(1, 6)))
def test_what_is_kept_and_not_crossed_out_waits_in_order(spool: tuple[Kept, ...], done: set[int]) -> None:
    raw = b"".join([*written(spool), *map(done_line, done)])
    read = read_spool(raw)
    assert read.waiting == tuple(kept for kept in spool if kept.number not in done)
    assert read.corrupt == ()


@given(spools, st.data())
def test_a_torn_end_costs_what_was_being_written_and_nothing_else(
    spool: tuple[Kept, ...], data: st.DataObject
) -> None:
    raw = b"".join(written(spool))
    cut = data.draw(st.integers(0, len(raw)))
    again = Kept(99, Report("/attempts/c/outcome", {}))
    read = read_spool(raw[:cut] + keep_line(again))
    whole = tuple(kept for kept in spool if len(b"".join(written(spool[: kept.number]))) - 1 <= cut)
    assert read.waiting == (*whole, again)
    assert len(read.corrupt) <= 1


@given(spools.filter(bool), st.data())
def test_a_rotten_byte_never_becomes_another_report(spool: tuple[Kept, ...], data: st.DataObject) -> None:
    lines = written(spool)
    chosen = data.draw(st.integers(0, len(lines) - 1))
    place = data.draw(st.integers(1, len(lines[chosen]) - 2))
    rotten = bytearray(lines[chosen])
    rotten[place] ^= data.draw(st.integers(1, 255))
    lines[chosen] = bytes(rotten)
    read = read_spool(b"".join(lines))
    assert read.waiting == tuple(kept for kept in spool if kept.number != chosen + 1)
    assert read.corrupt


@given(st.binary(max_size=300))
def test_anything_can_be_read(raw: bytes) -> None:
    assert read_spool(raw).waiting == ()


@pytest.mark.parametrize(
    "text", [b"{}", b"[]", b"nonsense", b'{"keep": 1}', b'"done"', b'{"done": "x"}', b"7"]
)
def test_a_line_that_sums_up_and_says_nothing_is_corrupt(text: bytes) -> None:
    from ledger.client.records import _sum

    line = _sum(text) + b" " + text
    assert read_spool(line).corrupt == (line,)


@given(spools, st.sets(st.sampled_from(["/attempts/a", "/attempts/b"])))
def test_the_next_in_turn_is_the_first_that_is_not_passed_over(
    spool: tuple[Kept, ...], busy: set[str]
) -> None:
    free = [kept for kept in spool if kept.report.about not in busy]
    assert next_in_turn(reversed(spool), busy) == (free[0] if free else None)
