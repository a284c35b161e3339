"""The contract notices what it is there for: each of these adapters is wrong in one way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from ledger import http
from ledger.providers import Adapter, Question, pace
from ledger.rules.looked_up import LookedUp, LookedUpKind
from tests.ledger.providers.contract import AdapterContract, Stage
from tests.ledger.providers.test_contract import HttpStage
from tests.support import proxy as lines
from tests.support.provider import ProviderProcess
from tests.support.proxy import Proxy

ABSENT = LookedUp(LookedUpKind.ABSENT, canary_seen=True)
Wrong = Callable[[LookedUp], LookedUp]


class WrongAdapter:
    """A right one, whose answer is spoilt, or which does something beside asking."""

    def __init__(self, right: Adapter, wrong: Wrong) -> None:
        self._right, self._wrong = right, wrong

    def look_up(self, question: Question) -> LookedUp:
        return self._wrong(self._right.look_up(question))


@pytest.fixture
def stage(provider: ProviderProcess) -> Iterator[Stage]:
    with Proxy(provider.url) as proxy:
        stage = HttpStage(proxy)
        stage.provider = provider
        yield stage


def spoil(stage: Stage, wrong: Wrong) -> None:
    right = stage.adapter
    stage.adapter = lambda: WrongAdapter(right(), wrong)  # type: ignore[method-assign]


def without_in_progress(answer: LookedUp) -> LookedUp:
    return ABSENT if any(record.state == "in_progress" for record in answer.records) else answer


def always_same(answer: LookedUp) -> LookedUp:
    return replace(answer, records=tuple(replace(record, content="same") for record in answer.records))


CONTRACT = AdapterContract()
SPOILT: dict[str, tuple[Wrong, Callable[[Stage], None]]] = {
    "an error is absent": (
        lambda answer: ABSENT if answer.kind is LookedUpKind.UNAVAILABLE else answer,
        lambda stage: CONTRACT.test_what_cannot_be_read_is_unavailable(
            stage, lines.answering(404), done=True
        ),
    ),
    "a listing cut short is absent": (
        lambda answer: ABSENT if answer.kind is LookedUpKind.UNAVAILABLE else answer,
        lambda stage: CONTRACT.test_a_listing_that_ends_on_the_way_is_unavailable(stage, lines.down),
    ),
    "only the first is taken": (
        lambda answer: replace(answer, records=answer.records[:1]),
        CONTRACT.test_every_send_is_found_on_whatever_page,
    ),
    "content is not compared": (always_same, CONTRACT.test_other_content_is_found_as_other),
    "an unknown status is nothing": (
        without_in_progress,
        CONTRACT.test_a_status_nobody_knows_is_in_progress_and_named,
    ),
    "the canary is not asked": (
        lambda answer: ABSENT if answer.kind is LookedUpKind.ABSENT else answer,
        CONTRACT.test_another_account_is_never_believed,
    ),
}


@pytest.mark.parametrize(("wrong", "check"), SPOILT.values(), ids=SPOILT)
def test_a_wrong_answer_is_noticed(stage: Stage, wrong: Wrong, check: Callable[[Stage], None]) -> None:
    check(stage)
    pace._free_at.clear()
    spoil(stage, wrong)
    with pytest.raises(AssertionError):
        check(stage)


def test_a_look_up_that_writes_is_noticed(stage: Stage) -> None:
    def also_posts(answer: LookedUp) -> LookedUp:
        http.request("POST", f"{stage.proxy.url}/messages", content=b"{}")
        return answer

    spoil(stage, also_posts)
    with pytest.raises(AssertionError):
        CONTRACT.test_a_look_up_only_reads(stage)


def test_asking_again_after_a_429_is_noticed(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ledger.providers.reading.held_for_s", lambda _: 0.0)
    with pytest.raises(AssertionError):
        CONTRACT.test_a_429_is_not_answered_by_asking_again(stage)
