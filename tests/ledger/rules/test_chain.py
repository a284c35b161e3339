"""An edited, cut, swapped or padded history is found, and where."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.rules.chain import CHAIN_START, Break, ChainedEvent, Head, event_hash, verify_chain


def chain(length: int) -> list[ChainedEvent]:
    """A sound history of that many events."""
    events: list[ChainedEvent] = []
    previous_hash = CHAIN_START
    for sequence in range(1, length + 1):
        fields = {"sequence": sequence, "kind": "attempt.noted", "body": f'{{"n":{sequence}}}'}
        hashed = event_hash(previous_hash, fields)
        events.append(ChainedEvent(sequence, previous_hash, hashed, fields))
        previous_hash = hashed
    return events


def resealed(events: list[ChainedEvent], start: int) -> list[ChainedEvent]:
    """What a forger would do: compute every hash from `start` on anew."""
    sealed = events[:start]
    for event in events[start:]:
        previous_hash = sealed[-1].hash if sealed else CHAIN_START
        sealed.append(
            ChainedEvent(event.sequence, previous_hash, event_hash(previous_hash, event.fields), event.fields)
        )
    return sealed


def test_a_hash_stays_what_it_was() -> None:
    fields = {"sequence": 1, "kind": "attempt.intent", "body": "{}"}
    assert event_hash(CHAIN_START, fields) == (
        "v1:sha256:967ac5bb79741f43604753f7fc1e12bc8692b8fa41986331f830adcdd9240ca0"
    )


def test_the_hash_covers_the_one_before_and_not_the_order_of_fields() -> None:
    fields = {"a": 1, "b": 2}
    assert event_hash("x", fields) == event_hash("x", {"b": 2, "a": 1})
    assert event_hash("x", fields) != event_hash("y", fields)


@given(st.integers(0, 12))
def test_a_sound_history_has_no_break(length: int) -> None:
    events = chain(length)
    assert verify_chain(events, heads=[Head(event.sequence, event.hash) for event in events]) is None


@given(st.integers(1, 12), st.data())
def test_one_edited_event_is_found_where_it_is(length: int, data: st.DataObject) -> None:
    events = chain(length)
    at = data.draw(st.integers(0, length - 1))
    events[at] = replace(events[at], fields={**events[at].fields, "body": "edited"})
    assert verify_chain(events) == Break(at + 1, "edited: its hash does not cover what it says")


@given(st.integers(2, 12), st.data())
def test_a_missing_event_is_found_where_it_was(length: int, data: st.DataObject) -> None:
    events = chain(length)
    at = data.draw(st.integers(0, length - 2))
    del events[at]
    found = verify_chain(events)
    assert found is not None
    assert found.sequence == at + 1
    assert found.problem.startswith("gap")


@given(st.integers(2, 12), st.data())
def test_two_swapped_events_are_found(length: int, data: st.DataObject) -> None:
    events = chain(length)
    at = data.draw(st.integers(0, length - 2))
    events[at], events[at + 1] = (
        replace(events[at + 1], sequence=at + 1),
        replace(events[at], sequence=at + 2),
    )
    assert verify_chain(events) == Break(at + 1, "swapped: it does not follow the event before it")


def test_an_event_twice_is_found() -> None:
    events = chain(3)
    assert verify_chain([*events, events[-1]]) == Break(4, "gap: sequence 3 stands where 4 belongs")


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_a_cut_tail_is_found_only_against_a_remembered_head(kept: int) -> None:
    events = chain(3)
    assert verify_chain(events[:kept]) is None
    head = Head(3, events[-1].hash)
    assert verify_chain(events[:kept], heads=[head]) == Break(3, "cut: a remembered event is missing")


@given(st.integers(1, 10), st.data())
def test_a_history_sealed_anew_is_found_against_a_remembered_head(length: int, data: st.DataObject) -> None:
    events = chain(length)
    at = data.draw(st.integers(0, length - 1))
    forged = list(events)
    forged[at] = replace(forged[at], fields={**forged[at].fields, "body": "forged"})
    forged = resealed(forged, at)
    assert verify_chain(forged) is None
    heads = [Head(event.sequence, event.hash) for event in events]
    assert verify_chain(forged, heads=heads) == Break(
        at + 1, "rewritten: a remembered event had another hash"
    )
