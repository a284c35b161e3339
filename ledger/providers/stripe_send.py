"""The `stripe` adapter as a sender: one form posted with its idempotency key, and what the answer proves.

Only Stripe's own words prove that nothing happened, so an answer that is not its error object proves nothing.
A declined payment intent still exists and may be paid later; and what Stripe calls done already may have been
done by an earlier send of the same operation. Both are for a look-up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from ledger import http
from ledger.providers.base import Question, SendAnswer, SentKind
from ledger.providers.pace import hold
from ledger.providers.reading import (
    LONGEST_DETAIL,
    NOT_ANSWERED,
    Unreadable,
    as_word,
    content_of,
    document,
    not_answered,
)
from ledger.providers.stripe import OBJECT, StripeAdapter
from ledger.providers.stripe_configuration import Sought, parse_stripe_configuration
from ledger.providers.templates import Unaskable, filled_body
from ledger.rules.pointers import pointer

REST_AFTER_REFUSED_KEY = "30"
SAYS_DONE_BEFORE = ("already", "unexpected_state")
NO_EFFECT = {
    (400, "invalid_request_error"): "validation",
    (404, "invalid_request_error"): "validation",
    (402, "card_error"): "declined",
}
"""Status and type of error → class. Everything else is unknown."""


class SendingStripeAdapter(StripeAdapter):
    """A Stripe account whose configuration also says what may be made there."""

    def wants_rest_s(self) -> float:
        return self._reader.wants_rest_s(self._configuration.api)

    def send(self, call: Question) -> SendAnswer:
        """Post what the tool makes, once."""
        sought = self._configuration.objects.get(call.tool)
        if sought is None or sought.send is None:
            return SendAnswer(
                kind=SentKind.NOT_SENT, detail=f"/objects does not say how to send {call.tool!r}"
            )
        try:
            answer = self._posted(sought, call)
        except Unaskable as why:
            return SendAnswer(kind=SentKind.REFUSED, error_class="validation", detail=f"Not sent: {why}")
        except NOT_ANSWERED as why:
            return not_answered(why)
        return self._meaning(answer, sought, call)

    def _posted(self, sought: Sought, call: Question) -> http.Response:
        form = self._form(sought, call)
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Idempotency-Key": call.idempotency_key,
        }
        return self._reader.ask("POST", f"{self._configuration.api}/v1/{sought.kind}", headers, form)

    def _form(self, sought: Sought, call: Question) -> bytes:
        """The fields as Stripe wants them, our mark in their metadata."""
        fields = filled_body(sought.send, call)
        if not isinstance(fields, Mapping):
            raise Unaskable("the arguments are no fields")
        given = fields.get("metadata") or {}
        if not isinstance(given, Mapping):
            raise Unaskable("metadata is no object")
        metadata = {**given, self._configuration.metadata: call.correlation_id}
        return urlencode(list(_flat({**fields, "metadata": metadata}))).encode()

    def _meaning(self, answer: http.Response, sought: Sought, call: Question) -> SendAnswer:
        try:
            said = document(answer.body)
        except Unreadable as why:
            return _unknown(f"it answered {answer.status}: {why}", reachable=False)
        if answer.cut or not isinstance(said, Mapping):
            return _unknown(f"it answered {answer.status} and no object", reachable=False)
        return (
            self._receipt(said, sought, call) if answer.status == 200 else self._refusal(answer.status, said)
        )

    def _receipt(self, thing: Mapping[str, Any], sought: Sought, call: Question) -> SendAnswer:
        """A receipt, where the object is done and shows what was sent; its id is kept in any case."""
        reference = thing.get("id")
        if thing.get("object") != OBJECT[sought.kind] or not isinstance(reference, str):
            return _unknown(f"its answer is no {OBJECT[sought.kind]}", reachable=False)
        if content_of(thing, call, sought.content, caseless="/currency") == "other":
            return _unknown("its answer shows other content than was sent", request_id=reference)
        state = self._state(thing, sought.kind)
        if state != "done":
            return _unknown(f"its answer says {as_word(thing.get('status'))}", request_id=reference)
        return SendAnswer(kind=SentKind.ACCEPTED, reference=reference, reachable=True)

    def _refusal(self, status: int, said: Mapping[str, Any]) -> SendAnswer:
        kind, code = as_word(pointer(said, "/error/type")), as_word(pointer(said, "/error/code"))
        detail = f"it answered {status} {kind} {code}"[:LONGEST_DETAIL]
        if status in (401, 403) and "error" in said:
            return self._refused_key(detail)
        intent = pointer(said, "/error/payment_intent/id")
        if isinstance(intent, str):
            return _unknown(f"{detail}; the payment intent exists", request_id=intent)
        declined = status == 402 and code == "card_declined"
        error_class = "declined" if declined else NO_EFFECT.get((status, kind))
        if error_class is None or any(word in code for word in SAYS_DONE_BEFORE):
            return _unknown(detail, reachable=status < 500 and status != 429)
        return SendAnswer(kind=SentKind.REFUSED, error_class=error_class, detail=detail, reachable=True)

    def _refused_key(self, detail: str) -> SendAnswer:
        """Nobody without a key gets anything done; it is sent again when somebody has mended that."""
        hold(self._reader.account(self._configuration.api), REST_AFTER_REFUSED_KEY)
        refused = self._configuration.auth.env
        return SendAnswer(kind=SentKind.NOT_SENT, detail=detail, reachable=True, refused_credential=refused)


def stripe_adapter(config: object) -> StripeAdapter:
    """The adapter of a stored configuration; one that can send where some tool says how."""
    configuration = parse_stripe_configuration(config)
    configuration.auth.secret()
    sends = configuration.can_send("*")
    return SendingStripeAdapter(configuration) if sends else StripeAdapter(configuration)


def _flat(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """`{"card": {"cvc": 1}, "tags": ["a"]}` as `card[cvc]=1` and `tags[0]=a`; nothing for null."""
    if isinstance(value, Mapping | list):
        inner = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, part in inner:
            yield from _flat(part, f"{name}[{key}]" if name else str(key))
    elif value is not None:
        yield name, as_word(value)


def _unknown(detail: str, *, reachable: bool = True, request_id: str = "") -> SendAnswer:
    return SendAnswer(kind=SentKind.UNKNOWN, detail=detail, reachable=reachable, request_id=request_id)
