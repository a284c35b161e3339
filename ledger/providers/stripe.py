"""The `stripe` adapter: finds charges, refunds and payment intents by our correlation id in their metadata.

Stripe has no look-up by idempotency key, forgets keys after a day, and its search lags behind, so only a
listing read to its last page can say *absent*. A listing names the newest first and goes on after the last
object's id. Whatever stops it on the way is *unavailable*. A status word that is new to this file still means
that the object exists: in progress.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn
from urllib.parse import urlencode

from ledger.providers.base import AdapterMisconfigured, Question
from ledger.providers.fields import RecordState
from ledger.providers.reading import (
    HASH_ONLY,
    LONGEST_WORD,
    MOST_KEPT_BYTES,
    NO_ANSWER,
    Endless,
    Reader,
    TooLong,
    Unreadable,
    absent,
    as_word,
    comparable,
    content_of,
    further,
    name_of,
    no_answer,
    unknown_words,
)
from ledger.providers.stripe_configuration import (
    Kind,
    Sought,
    StripeConfiguration,
)
from ledger.rules.canonical import canonical_bytes
from ledger.rules.looked_up import LookedUp, LookedUpKind, Record

API_VERSION = "2024-06-20"
"""Asked for with every request, so that an account's own default changes nothing of what is read here."""

OBJECT: Mapping[Kind, str] = {"charges": "charge", "refunds": "refund", "payment_intents": "payment_intent"}

# About what fits into one answer of 64 kB; a page that does not is asked for in halves.
USUAL_PAGE: Mapping[Kind, int] = {"charges": 15, "refunds": 50, "payment_intents": 10}

EXPANDED: Mapping[Kind, str] = {"payment_intents": "data.latest_charge"}
"""What is needed beside the object itself: only its charge tells whether a payment was given back."""

STATES: Mapping[Kind, Mapping[str, RecordState]] = {
    "refunds": {
        "pending": "in_progress",
        "requires_action": "in_progress",
        "succeeded": "done",
        "failed": "failed",
        "canceled": "failed",
    },
    "charges": {"pending": "in_progress", "succeeded": "done", "failed": "failed"},
    "payment_intents": {
        "requires_payment_method": "in_progress",
        "requires_confirmation": "in_progress",
        "requires_action": "in_progress",
        "processing": "in_progress",
        "requires_capture": "in_progress",
        "succeeded": "done",
        "canceled": "failed",
    },
}

# Evidence without what would let its reader pay (client_secret) and without the customer's address.
KEPT = (
    "id", "object", "created", "livemode", "status", "amount", "currency", "charge", "payment_intent",
    "customer", "metadata", "captured", "refunded", "amount_refunded", "disputed", "failure_code",
    "failure_reason", "cancellation_reason", "reason",
)  # fmt: skip


class StripeAdapter:
    """One Stripe account, read with a restricted key."""

    def __init__(self, configuration: StripeConfiguration) -> None:
        self._configuration = configuration
        headers = {"Accept": "application/json", "Stripe-Version": API_VERSION}
        if configuration.account:
            headers["Stripe-Account"] = configuration.account
        self._reader = Reader(configuration.auth, headers, configuration.rate_per_s)

    def look_up(self, question: Question) -> LookedUp:
        """List what the tool makes from shortly before the first send until now, and say what is ours."""
        sought = self._configuration.objects.get(question.tool) or _unknown_tool(question.tool)
        if not comparable(question, sought.content):
            return LookedUp(LookedUpKind.NO_LOOKUP, detail=HASH_ONLY)
        try:
            ours = [thing for thing in self._listed(sought.kind, question) if self._is_ours(thing, question)]
            if not ours:
                return self._absent()
            records = tuple(self._record(thing, sought, question) for thing in ours)
            return LookedUp(LookedUpKind.FOUND, records, detail=self._new_words(sought.kind, ours))
        except NO_ANSWER as why:
            return no_answer(why)

    def _absent(self) -> LookedUp:
        seen = self._canary_seen()
        return absent(seen=seen, credential=self._reader.credential)

    def _is_ours(self, thing: Mapping[str, Any], question: Question) -> bool:
        metadata = thing.get("metadata") or {}
        if not isinstance(metadata, Mapping):
            raise Unreadable("an object's metadata cannot be read")
        return metadata.get(self._configuration.metadata) == question.correlation_id

    def _listed(self, kind: Kind, question: Question) -> Iterator[Mapping[str, Any]]:
        """Every object to the last page; Endless when the last is not reached."""
        size = self._configuration.page_size or USUAL_PAGE[kind]
        after, seen = "", set[str]()
        for pages_read in range(self._configuration.max_pages):
            with further(pages_read):
                things, more, size = self._page(self._query(kind, question, after), kind, size)
            for thing in things:
                if thing["id"] in seen:
                    raise Endless("its pages go in a circle")
                seen.add(thing["id"])
                yield thing
            if not more:
                return
            after = things[-1]["id"]
        raise Endless("it has too many pages")

    def _query(self, kind: Kind, question: Question, after: str) -> Mapping[str, str]:
        margin_s, first = self._configuration.margin_s, question.first_sent_at
        query: dict[str, str] = {}
        if margin_s is not None and first is not None:
            query["created[gt]"] = str(max(0, int(first.timestamp() - margin_s) - 1))
        if kind in EXPANDED:
            query["expand[]"] = EXPANDED[kind]
        if after:
            query["starting_after"] = after
        return query

    def _page(
        self, query: Mapping[str, str], kind: Kind, size: int
    ) -> tuple[list[Mapping[str, Any]], bool, int]:
        """One page's objects, whether more follow, and the page size that fits into one answer."""
        while True:
            try:
                page = self._reader.get(self._address(kind, {**query, "limit": str(size)}))
            except TooLong:
                if size == 1:
                    raise
                size = (size + 1) // 2
            else:
                self._reader.check_ok(page.status)
                return *_objects_in(page.document, OBJECT[kind]), size

    def _address(self, kind: Kind, query: Mapping[str, str]) -> str:
        return f"{self._configuration.api}/v1/{kind}?{urlencode(query)}"

    def _canary_seen(self) -> bool:
        """Does this key see, in this account, what is known to exist there?"""
        canary = self._configuration.canary
        page = self._reader.get(f"{self._configuration.api}/v1/{canary.kind}/{canary.object_id}")
        if page.status == 404:
            return False
        self._reader.check_ok(page.status)
        return isinstance(page.document, Mapping) and page.document.get("id") == canary.object_id

    def _record(self, thing: Mapping[str, Any], sought: Sought, question: Question) -> Record:
        return Record(
            reference=name_of(thing["id"]),
            content=content_of(thing, question, sought.content, caseless="/currency"),
            state=self._state(thing, sought.kind) or "in_progress",
            data=_kept(thing),
        )

    def _state(self, thing: Mapping[str, Any], kind: Kind) -> RecordState | None:
        """What became of it; None for a status word this file does not know."""
        charge = thing if kind == "charges" else thing.get("latest_charge")
        state = STATES[kind].get(_status(thing))
        if state == "done" and _given_back(charge):
            return "reversed"
        if _only_authorised(thing, kind):
            return self._configuration.authorised
        return state

    def _new_words(self, kind: Kind, things: list[Mapping[str, Any]]) -> str:
        return unknown_words({_status(thing) for thing in things if _status(thing) not in STATES[kind]})


def _unknown_tool(tool: str) -> NoReturn:
    raise AdapterMisconfigured("/objects", f"does not say what the tool {tool!r} makes at Stripe")


def _objects_in(page: object, word: str) -> tuple[list[Mapping[str, Any]], bool]:
    """A list's objects and whether more follow, or Unreadable: also for a list of something else."""
    things, more = (page.get("data"), page.get("has_more")) if isinstance(page, Mapping) else (None, None)
    if not isinstance(things, list) or not isinstance(more, bool):
        raise Unreadable("its answer is not a list")
    for thing in things:
        if (
            not isinstance(thing, Mapping)
            or thing.get("object") != word
            or not isinstance(thing.get("id"), str)
        ):
            raise Unreadable(f"its list holds something that is no {word}")
    if more and not things:
        raise Unreadable("it says that more follows an empty page")
    return things, more


def _status(thing: Mapping[str, Any]) -> str:
    return as_word(thing.get("status"))[:LONGEST_WORD]


def _given_back(charge: object) -> bool:
    """Was money of this charge given back, in part or whole, or is somebody asking for it?"""
    if not isinstance(charge, Mapping):
        return False
    return bool(charge.get("refunded") or charge.get("amount_refunded") or charge.get("disputed"))


def _only_authorised(thing: Mapping[str, Any], kind: Kind) -> bool:
    """Is the money held and not yet taken?"""
    if kind == "charges":
        return _status(thing) == "succeeded" and thing.get("captured") is not True
    return kind == "payment_intents" and _status(thing) == "requires_capture"


def _kept(thing: Mapping[str, Any]) -> Mapping[str, object]:
    """The parts of the object that are evidence; without its metadata where that is large."""
    kept = {name: thing[name] for name in KEPT if name in thing}
    if len(canonical_bytes(kept)) > MOST_KEPT_BYTES:
        del kept["metadata"]
    return kept
