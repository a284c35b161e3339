"""How the `http` adapter sends a stored request, and what each answer to it means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ledger.providers.base import AdapterMisconfigured
from ledger.providers.fields import Fields, compared_content
from ledger.providers.parts import RequestTemplate, StateWords, request_template, state_words
from ledger.providers.templates import problem_with_body

METHODS = ("POST", "PUT", "PATCH", "DELETE")
USUALLY_ACCEPTED = (200, 201)
CLASSES = ("validation", "declined", "refused")
SAY_NOTHING_FOR_GOOD = frozenset({408, 425, 429, 499})
"""Client errors that a proxy or an impatient provider gives while the request may still be worked on, or
that only mean *later*."""


@dataclass(frozen=True)
class AnswerTemplate:
    """Where the record stands in the answer to a send, and what must be seen in it for a receipt."""

    record: str
    reference: str
    request_id: str | None
    state: StateWords
    content: Mapping[str, str]


@dataclass(frozen=True)
class SendTemplate:
    """One request with an effect. `body` None: nothing is sent along. `no_effect`: status → error class."""

    method: str
    request: RequestTemplate
    body: object
    accepted: frozenset[int]
    no_effect: Mapping[int, str]
    answer: AnswerTemplate


def send_template(
    fields: Fields, *, reference: str, state: StateWords, content: Mapping[str, str]
) -> SendTemplate:
    """Check the `send` part. What a look-up's record is read by is what the answer's is read by, too, unless
    the part says otherwise."""
    template = SendTemplate(
        method=fields.one_of("method", METHODS, "POST"),
        request=request_template(fields),
        body=_body(fields),
        accepted=_accepted(fields),
        no_effect=_no_effect(fields.inner("no_effect")),
        answer=_answer(fields.inner("answer"), AnswerTemplate("", reference, None, state, content)),
    )
    fields.check_nothing_left()
    if not _carries_its_mark(template):
        raise AdapterMisconfigured(
            fields.path,
            "send {correlation_id} or {idempotency_key} along; else nobody could ever find out what happened",
        )
    return template


def _body(fields: Fields) -> object:
    body = fields.take("body")
    problem = problem_with_body(body)
    if problem:
        raise AdapterMisconfigured(fields.at("body"), problem)
    return body


def _accepted(fields: Fields) -> frozenset[int]:
    listed = fields.take("accepted", list(USUALLY_ACCEPTED))
    if not isinstance(listed, list) or not listed or not all(status in range(200, 300) for status in listed):
        raise AdapterMisconfigured(fields.at("accepted"), "a list of statuses from 200 to 299 is needed here")
    return frozenset(listed)


def _no_effect(fields: Fields | None) -> Mapping[int, str]:
    """Only what is named here proves that nothing happened."""
    if fields is None:
        return {}
    for status, error_class in fields.values.items():
        if (
            not status.isdecimal()
            or int(status) not in range(400, 500)
            or int(status) in SAY_NOTHING_FOR_GOOD
        ):
            raise AdapterMisconfigured(
                fields.at(status), "this status does not prove that nothing happened, and will not happen"
            )
        if error_class not in CLASSES:
            raise AdapterMisconfigured(fields.at(status), f"one of {', '.join(CLASSES)} is needed here")
    return {int(status): error_class for status, error_class in fields.values.items()}


def _answer(fields: Fields | None, usual: AnswerTemplate) -> AnswerTemplate:
    if fields is None:
        return usual
    state, content = fields.inner("state"), fields.inner("content")
    answer = AnswerTemplate(
        record=fields.pointer("record", whole=True) if "record" in fields.values else usual.record,
        reference=fields.pointer("reference") if "reference" in fields.values else usual.reference,
        request_id=fields.pointer("request_id") if "request_id" in fields.values else None,
        state=state_words(state) if state else usual.state,
        content=_content(content) if content else usual.content,
    )
    fields.check_nothing_left()
    return answer


def _content(fields: Fields) -> Mapping[str, str]:
    """Empty where the answer repeats nothing of what was sent: a receipt then rests on its reference."""
    return compared_content(fields) if fields.values else {}


def _carries_its_mark(template: SendTemplate) -> bool:
    texts = repr((template.request.url, dict(template.request.headers), template.body))
    return "{correlation_id}" in texts or "{idempotency_key}" in texts
