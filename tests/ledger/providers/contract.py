"""What every adapter must keep to, as tests any adapter can be put through.

Write a Stage that stands a provider of that kind behind a Proxy, and a class that brings both together:

    class TestMine(AdapterContract):
        @pytest.fixture
        def stage(self) -> Iterator[Stage]: ...

A provider that is not asked over HTTP gets an AnyStage and the LookUpContract, which is the part of it that
does not depend on how it is asked; what it cannot read is for tests of its own.

One question runs through all of it: does the adapter ever take "I could not see" for "it is not there"?
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from ledger.providers import Adapter, Question
from ledger.rules.canonical import canonical_bytes, content_hash
from ledger.rules.keys import correlation_id, idempotency_key
from ledger.rules.looked_up import LookedUp, LookedUpKind
from tests.support import proxy as lines
from tests.support.proxy import Fault, Proxy

_numbers = itertools.count(1)


class AnyStage(ABC):
    """One provider of its kind, however it is spoken to. `adapter()` is configured with a canary."""

    tool: str
    args: Mapping[str, Any]
    secret: str

    @abstractmethod
    def adapter(self) -> Adapter: ...

    @abstractmethod
    def elsewhere(self) -> AbstractContextManager[object]:
        """While this lasts the adapter looks at somebody else's account, which is readable and empty."""

    @abstractmethod
    def effect(self, question: Question, args: Mapping[str, Any]) -> str:
        """Let the provider do it, as an agent would that sends these arguments; returns its reference."""

    @abstractmethod
    def other_args(self) -> Mapping[str, Any]:
        """Arguments that differ from `args` in what the configuration compares."""

    def question(self, **changed: Any) -> Question:
        """About an operation that nobody asked about before, sent just now."""
        operation_key = f"contract:{next(_numbers)}"
        asked = Question(
            tool=self.tool,
            args=self.args,
            args_hash=content_hash(canonical_bytes(dict(self.args))),
            operation_key=operation_key,
            idempotency_key=idempotency_key("t1", operation_key, 1),
            correlation_id=correlation_id("t1", operation_key),
            first_sent_at=datetime.now(UTC),
        )
        return replace(asked, **changed)

    def sent(self, **changed: Any) -> tuple[Question, str]:
        """A question whose effect the provider really had, and its reference there."""
        asked = self.question(**changed)
        return asked, self.effect(asked, self.args)

    def look_up(self, question: Question) -> LookedUp:
        """One look-up by a new adapter, with nothing in its way."""
        return self.adapter().look_up(question)


class Stage(AnyStage):
    """A provider with a JSON API, seen by an adapter through `proxy` only.

    `adapter()` asks for pages so small that three effects need several of them.
    """

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy

    @abstractmethod
    def with_status(self, document: Any, word: str) -> Any:
        """The provider's page as if every record in it had this status."""

    @abstractmethod
    def without_end(self, document: Any, number: int) -> Any:
        """The provider's page number so and so, empty of records of ours, as if another one followed."""

    @abstractmethod
    def of_another_account(self) -> Fault:
        """How the provider answers a key of somebody else's account."""

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        self.proxy.fault = self.of_another_account()
        yield
        self.proxy.fault = lines.honest

    def ask(self, question: Question, fault: Fault = lines.honest) -> LookedUp:
        """One look-up by a new adapter through this fault."""
        self.proxy.fault = fault
        return self.adapter().look_up(question)

    def requests_of(self, question: Question, fault: Fault = lines.honest) -> list[lines.Request]:
        before = len(self.proxy.requests)
        self.ask(question, fault)
        return self.proxy.requests[before:]


UNREADABLE: Mapping[str, Fault] = {
    "bad request": lines.answering(400),
    "unauthorised": lines.answering(401),
    "forbidden": lines.answering(403),
    "not found": lines.answering(404),
    "too many requests": lines.answering(429, Retry_After="1"),
    "server error": lines.answering(500),
    "unavailable": lines.answering(503),
    "redirect": lines.answering(302, Location="http://127.0.0.1:1/elsewhere"),
    "no content": lines.answering(204, b""),
    "empty": lines.answering(200, b""),
    "not json": lines.answering(200, b"<p>Welcome</p>"),
    "null": lines.answering(200, b"null"),
    "a number": lines.answering(200, b"7"),
    "an error with a 200": lines.answering(200, b'{"error": {"message": "try again"}}'),
    "two documents": lines.answering(200, b"{} {}"),
    "duplicate keys": lines.answering(200, b'{"data": [], "data": [1]}'),
    "records that are none": lines.answering(200, b'{"data": ["x", 1, null], "has_more": false}'),
    "too long": lines.answering(200, b'{"data": [], "x": "' + b"x" * 70_000 + b'"}'),
    "truncated": lines.truncated,
    "down": lines.down,
    "answer lost": lines.dropped_after_sending,
}


class LookUpContract:
    """What holds for every adapter. Inherit, and give the fixture `stage`."""

    def test_what_was_done_is_found(self, stage: AnyStage) -> None:
        asked, reference = stage.sent()
        (record,) = stage.look_up(asked).records
        assert (record.reference, record.content, record.state) == (reference, "same", "done")

    def test_every_send_is_found(self, stage: AnyStage) -> None:
        asked, first = stage.sent()
        references = {first, *(stage.effect(asked, stage.args) for _ in range(3))}
        stage.sent()
        found = stage.look_up(asked).records
        assert (len(references), {record.reference for record in found}) == (4, references)

    def test_what_was_not_done_is_absent_and_the_canary_is_seen(self, stage: AnyStage) -> None:
        stage.sent()
        looked_up = stage.look_up(stage.question())
        assert (looked_up.kind, looked_up.canary_seen) == (LookedUpKind.ABSENT, True)

    def test_other_content_is_found_as_other(self, stage: AnyStage) -> None:
        asked = stage.question()
        stage.effect(asked, stage.other_args())
        (record,) = stage.look_up(asked).records
        assert record.content == "other"

    def test_arguments_known_by_hash_only_are_never_called_the_same(self, stage: AnyStage) -> None:
        asked, _ = stage.sent(args=None)
        looked_up = stage.look_up(asked)
        assert looked_up.kind is LookedUpKind.NO_LOOKUP or looked_up.records[0].content == "same"
        assert looked_up.kind is not LookedUpKind.ABSENT

    def test_another_account_is_never_believed(self, stage: AnyStage) -> None:
        asked, _ = stage.sent()
        with stage.elsewhere():
            looked_up = stage.look_up(asked)
        assert looked_up.kind is LookedUpKind.UNAVAILABLE or (
            looked_up.kind is LookedUpKind.ABSENT and looked_up.canary_seen is False
        )

    def test_the_secret_is_shown_nowhere(self, stage: AnyStage) -> None:
        asked, _ = stage.sent()
        adapter = stage.adapter()
        assert stage.secret not in repr(adapter) + repr(vars(adapter)) + repr(adapter.look_up(asked))


class AdapterContract(LookUpContract):
    """What holds for an adapter of a JSON API beside that, however its line behaves."""

    def test_every_send_is_found_on_whatever_page(self, stage: Stage) -> None:
        asked, first = stage.sent()
        references = {first, *(stage.effect(asked, stage.args) for _ in range(3))}
        stage.sent()
        requests = stage.requests_of(asked)
        assert len(requests) > 1, "the stage's pages are too large to prove anything"
        assert {record.reference for record in stage.ask(asked).records} == references

    def test_a_look_up_only_reads(self, stage: Stage) -> None:
        asked, _ = stage.sent()
        for question in (asked, stage.question()):
            requests = stage.requests_of(question)
            assert {request.method for request in requests} == {"GET"}
            assert not any(request.body for request in requests)

    def test_a_status_nobody_knows_is_in_progress_and_named(self, stage: Stage) -> None:
        asked, _ = stage.sent()
        strange = lines.altered(lambda _, document: stage.with_status(document, "quiescent"))
        looked_up = stage.ask(asked, strange)
        assert [record.state for record in looked_up.records] == ["in_progress"]
        assert "quiescent" in looked_up.detail

    @pytest.mark.parametrize("fault", UNREADABLE.values(), ids=UNREADABLE)
    @pytest.mark.parametrize("done", [True, False], ids=["done", "not done"])
    def test_what_cannot_be_read_is_unavailable(self, stage: Stage, fault: Fault, *, done: bool) -> None:
        asked = stage.sent()[0] if done else stage.question()
        assert stage.ask(asked, fault).kind is LookedUpKind.UNAVAILABLE

    @pytest.mark.parametrize("fault", UNREADABLE.values(), ids=UNREADABLE)
    def test_a_listing_that_ends_on_the_way_is_unavailable(self, stage: Stage, fault: Fault) -> None:
        """Also where something was found on the first page: there may be a second one."""
        asked, _ = stage.sent()
        for _ in range(3):
            stage.effect(asked, stage.args)
        looked_up = stage.ask(asked, lines.only_from(1, fault))
        assert (looked_up.kind, looked_up.records) == (LookedUpKind.UNAVAILABLE, ())

    def test_a_listing_without_end_is_unavailable(self, stage: Stage) -> None:
        endless = lines.altered(lambda request, document: stage.without_end(document, request.number))
        looked_up = stage.ask(stage.question(), endless)
        assert looked_up.kind is LookedUpKind.UNAVAILABLE
        assert len(stage.proxy.requests) < 200

    @pytest.mark.parametrize("status", [401, 403, 429, 500])
    def test_a_canary_that_cannot_be_read_says_nothing(self, stage: Stage, status: int) -> None:
        asked = stage.question()
        requests = stage.requests_of(asked)
        looked_up = stage.ask(asked, lines.only_from(len(requests) - 1, lines.answering(status)))
        assert looked_up.kind is LookedUpKind.UNAVAILABLE or looked_up.canary_seen is False

    def test_a_429_is_not_answered_by_asking_again(self, stage: Stage) -> None:
        busy = lines.answering(429, Retry_After="5")
        assert len(stage.requests_of(stage.question(), busy)) == 1
        assert len(stage.requests_of(stage.question())) == 0, "it was asked again before its time"

    def test_the_secret_is_sent_in_its_header_only(self, stage: Stage) -> None:
        asked, _ = stage.sent()
        requests = stage.requests_of(asked)
        assert requests
        assert all(stage.secret in request.headers["authorization"] for request in requests)
        assert not any(stage.secret in request.target for request in stage.proxy.requests)
