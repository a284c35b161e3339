"""The `http` adapter as a sender: one request made of stored arguments, and what its answer proves.

An answer proves that it happened only where its record names a reference, is done, and shows what was sent;
that nothing happened only by a status the configuration names, or because nothing left here. Everything else
is unknown, and is found out by look-up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ledger import http
from ledger.providers.base import Adapter, Question, SendAnswer, SentKind
from ledger.providers.configuration import Configuration, parse_configuration
from ledger.providers.http_json import HttpAdapter
from ledger.providers.reading import (
    LONGEST_DETAIL,
    NOT_ANSWERED,
    REFUSES_CREDENTIAL,
    Unreadable,
    as_word,
    asked_too_often,
    content_of,
    document,
    not_answered,
    state_of,
)
from ledger.providers.send_configuration import SendTemplate
from ledger.providers.templates import Unaskable, filled_and_encoded, filled_body
from ledger.rules.canonical import canonical_bytes
from ledger.rules.pointers import pointer

LONGEST_REFERENCE = 255


class SendingHttpAdapter(HttpAdapter):
    """A provider whose configuration also says how to send."""

    def __init__(self, configuration: Configuration, template: SendTemplate) -> None:
        super().__init__(configuration)
        self._template = template

    def wants_rest_s(self) -> float:
        return self._reader.wants_rest_s(self._template.request.url)

    def send(self, call: Question) -> SendAnswer:
        """Send the one request, and read what its answer proves."""
        try:
            url, headers, content = self._request(call)
        except Unaskable as why:
            return SendAnswer(kind=SentKind.REFUSED, error_class="validation", detail=f"Not sent: {why}")
        try:
            answer = self._reader.ask(self._template.method, url, headers, content)
        except NOT_ANSWERED as why:
            return not_answered(why)
        return self._meaning(answer, call)

    def _request(self, call: Question) -> tuple[str, dict[str, str], bytes | None]:
        template = self._template
        headers = {name: filled_and_encoded(text, call) for name, text in template.request.headers.items()}
        url = filled_and_encoded(template.request.url, call)
        if template.body is None:
            return url, headers, None
        content = canonical_bytes(filled_body(template.body, call))
        return url, {"Content-Type": "application/json", **headers}, content

    def _meaning(self, answer: http.Response, call: Question) -> SendAnswer:
        error_class = self._template.no_effect.get(answer.status)
        if error_class is not None:
            detail = f"it answered {answer.status}: {_beginning(answer.body)}"[:LONGEST_DETAIL]
            return SendAnswer(kind=SentKind.REFUSED, error_class=error_class, detail=detail, reachable=True)
        if answer.status not in self._template.accepted:
            too_often = asked_too_often(answer)
            reachable = answer.status < 500 and not too_often
            refused = "" if too_often or answer.status not in REFUSES_CREDENTIAL else self._reader.credential
            said = _unknown(f"it answered {answer.status}", reachable=reachable)
            return replace(said, refused_credential=refused)
        try:
            return self._receipt(answer, call)
        except Unreadable as why:
            return _unknown(str(why), reachable=False)

    def _receipt(self, answer: http.Response, call: Question) -> SendAnswer:
        """A receipt, where the answer proves enough; what it names is kept in any case."""
        if answer.cut:
            raise Unreadable("its answer is longer than 64 kB")
        template = self._template.answer
        record = pointer(document(answer.body), template.record)
        if not isinstance(record, Mapping):
            raise Unreadable(f"there is no record at {template.record or 'the top'} of its answer")
        reference = _reference(record, template.reference)
        missing = self._not_proven(record, call, reference)
        if missing:
            return _unknown(missing, reachable=True, request_id=reference)
        request_id = _reference(record, template.request_id) if template.request_id else ""
        return SendAnswer(kind=SentKind.ACCEPTED, reference=reference, request_id=request_id, reachable=True)

    def _not_proven(self, record: Mapping[str, Any], call: Question, reference: str) -> str:
        """What keeps this record from being a receipt; empty where nothing does."""
        template = self._template.answer
        if not reference:
            return f"its answer has no reference at {template.reference}"
        state = state_of(record, template.state)
        if state != "done":
            return f"its answer says {state or 'a status word that is not configured'}"
        if template.content and content_of(record, call, template.content) == "other":
            return "its answer shows other content than was sent"
        return ""


def http_adapter(config: object) -> Adapter:
    """The adapter of a stored configuration; one that can send where it says how."""
    configuration = parse_configuration(config)
    if configuration.auth is not None:
        configuration.auth.secret()
    if configuration.send is None:
        return HttpAdapter(configuration)
    return SendingHttpAdapter(configuration, configuration.send)


def _unknown(detail: str, *, reachable: bool, request_id: str = "") -> SendAnswer:
    return SendAnswer(kind=SentKind.UNKNOWN, detail=detail, reachable=reachable, request_id=request_id)


def _reference(record: Mapping[str, Any], path: str) -> str:
    """The text or number that stands there; empty where none does, or none that could be kept."""
    value = pointer(record, path)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    word = as_word(value)
    return word if len(word) <= LONGEST_REFERENCE and word.isprintable() else ""


def _beginning(body: bytes) -> str:
    text = body.decode("utf-8", "backslashreplace")[:LONGEST_DETAIL]
    return text.encode("ascii", "backslashreplace").decode()
