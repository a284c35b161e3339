"""No host is asked faster than its configuration allows, however many threads ask."""

from types import SimpleNamespace

import pytest

from ledger.http import OutOfTime, all_within
from ledger.providers import pace as module


def test_turns_are_spaced_for_each_host(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: 100.0, sleep=slept.append)
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(module, "_free_at", {})
    for host in ("a", "a", "b", "a"):
        module.pace(host, 4.0)
    assert slept == [0.0, 0.25, 0.0, 0.5]


def test_time_that_passed_is_not_waited_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    times = iter([100.0, 107.0])
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(times), sleep=slept.append))
    monkeypatch.setattr(module, "_free_at", {})
    for _ in range(2):
        module.pace("a", 1.0)
    assert slept == [0.0, 0.0]


def test_a_turn_after_the_time_there_is_is_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: 100.0, sleep=slept.append))
    monkeypatch.setattr(module, "_free_at", {})
    with all_within(5.0):
        module.pace("a", 0.1)
        for _ in range(2):
            with pytest.raises(OutOfTime):
                module.pace("a", 0.1)
    assert (slept, module.held_for_s("a")) == ([0.0], 10.0)


@pytest.mark.parametrize(
    ("retry_after", "left_s"),
    [("7", 7.0), ("900", 30.0), ("0", 0.0), ("", 1.0), ("Thu, 1 Jan", 1.0), ("-5", 1.0)],
)
def test_an_account_that_asks_to_be_left_alone_is(
    monkeypatch: pytest.MonkeyPatch, retry_after: str, left_s: float
) -> None:
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: 100.0))
    module.hold("p.test A", retry_after)
    assert (module.held_for_s("p.test A"), module.held_for_s("p.test B")) == (left_s, 0.0)
