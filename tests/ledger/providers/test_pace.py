"""No host is asked faster than its configuration allows, however many threads ask."""

from types import SimpleNamespace

import pytest

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
