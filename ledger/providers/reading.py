"""What every adapter that reads JSON over HTTP does: ask one page, and compare what it found.

An adapter must never take "I could not see" for "it is not there". Everything here raises Unreadable for
whatever is not a whole, readable answer; only the caller, who read every page, may say *absent*.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from ledger import http
from ledger.providers.base import AdapterMisconfigured, Question, SendAnswer, SentKind
from ledger.providers.fields import Auth, RecordState
from ledger.providers.pace import held_for_s, hold, pace
from ledger.providers.parts import StateWords
from ledger.rules.canonical import MalformedJson, canonical_bytes, read_json
from ledger.rules.looked_up import LookedUp, LookedUpKind
from ledger.rules.pointers import pointer

_LINK = re.compile(r"<([^<>]+)>((?:[^,<\"]|\"[^\"]*\")*)")
_NEXT = re.compile(r";\s*rel=(?:next(?=[\s;]|$)|\"(?:[^\"]*\s)?next(?:\s[^\"]*)?\")", re.IGNORECASE)

MOST_KEPT_BYTES = 4_096
LONGEST_WORD = 60
LONGEST_DETAIL = 500
LONGEST_NAME = 1_000
"""Of a record: what is kept as the reference of an attempt."""
CANARY_UNSEEN = "the canary was not seen either: this key may not look, or looks at somebody else's account"
NO_CREDENTIAL = "none is configured"
REFUSES_CREDENTIAL = frozenset({401, 403})
HASH_ONLY = "only a hash of the arguments is known, so what is found could not be compared"


class Unreadable(Exception):
    """No whole, readable answer; says nothing about what happened."""


class NotNow(Unreadable):
    """The provider wants to be left alone for a while. Nothing was sent."""


class CredentialRefused(Unreadable):
    """The provider does not let this key in, and will not until somebody mends that."""

    def __init__(self, problem: str, credential: str) -> None:
        super().__init__(problem)
        self.credential = credential


class Endless(Unreadable):
    """The provider answers page after page, and the last one is not reached: a circle, or too many for the
    number or the time allowed."""


class TooLong(Unreadable):
    """More than the guarded client reads of one answer."""


NO_ANSWER = (Unreadable, http.NotConnected, http.NoAnswer)
"""Everything that means *unavailable*."""

NOT_ANSWERED = (NotNow, http.AddressRefused, http.NotConnected, http.NoAnswer)
"""Everything that can keep a send from being answered."""


@dataclass(frozen=True)
class Page:
    """One answer: its status, its document (None where it is not a 200), and its Link header."""

    status: int
    document: object
    link: str = ""


@dataclass(frozen=True)
class Reader:
    """Asks one provider, not faster than it allows. Holds the secret, and shows it to nobody."""

    auth: Auth | None
    headers: Mapping[str, str]
    rate_per_s: float

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> Page:
        """One page. Raises what NO_ANSWER lists, and AdapterMisconfigured without a secret."""
        answer = self.ask("GET", url, headers or {})
        if answer.status != 200:
            return Page(answer.status, None)
        if answer.cut:
            raise TooLong("its answer is longer than 64 kB; ask for smaller pages")
        return Page(200, document(answer.body), answer.headers.get("link", ""))

    def ask(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None = None
    ) -> http.Response:
        """One request at its turn. Raises NotNow, AddressRefused or NotConnected (nothing was sent, OutOfTime
        among them where its turn comes too late), or NoAnswer."""
        host, account = self._whose(url)
        _check_not_held(account)
        if pace(host, self.rate_per_s):
            _check_not_held(account)  # another answer may have asked for rest meanwhile
        answer = http.request(
            method, url, headers={**self.headers, **headers, **self._secret()}, content=content
        )
        if asked_too_often(answer):
            hold(account, answer.headers.get("retry-after", ""))
            if answer.status == 403 and method == "GET":
                raise Unreadable("it answered 403 because it was asked too often")
        return answer

    def wants_rest_s(self, url: str) -> float:
        """How long nothing may be asked at this address."""
        return held_for_s(*self._whose(url))

    def account(self, url: str) -> str:
        """Who is asked there on whose behalf, as something to wait for."""
        return self._whose(url)[1]

    def check_ok(self, status: int) -> None:
        """Raise Unreadable for everything but a 200."""
        if status in REFUSES_CREDENTIAL:
            refusal = f"it answered {status}: it refuses the key it is asked with, or what that key may see"
            raise CredentialRefused(refusal, self.credential)
        if status != 200:
            raise Unreadable(f"it answered {status}")

    @property
    def credential(self) -> str:
        """What is shown to the provider, by name."""
        return self.auth.env if self.auth else NO_CREDENTIAL

    def _whose(self, url: str) -> tuple[str, str]:
        host = urlsplit(url).netloc
        return host, f"{host} {self.auth.env if self.auth else ''}"

    def _secret(self) -> Mapping[str, str]:
        return {self.auth.header: f"{self.auth.prefix}{self.auth.secret()}"} if self.auth else {}


def asked_too_often(answer: http.Response) -> bool:
    """A 429; or a 403 that says when to come again, or that nothing is left of what may be asked: then it is
    about how often, and not about the key."""
    if answer.status == 403:
        return "retry-after" in answer.headers or answer.headers.get("x-ratelimit-remaining") == "0"
    return answer.status == 429


@contextmanager
def further(pages_read: int) -> Iterator[None]:
    """Ask for what comes after so many pages. Raises Endless where that takes more time than there is: who
    answered that much is there, and would be asked for as much again in vain."""
    try:
        yield
    except (http.NotConnected, http.NoAnswer) as why:
        if pages_read and (isinstance(why, http.OutOfTime) or not http.is_time_left()):
            raise Endless(f"it has more than could be read in time, {pages_read} pages") from why
        raise


def _check_not_held(account: str) -> None:
    left_s = held_for_s(account)
    if left_s:
        raise NotNow(f"it was asked too often and wants to be left alone for {left_s:.1f} s more")


def absent(*, seen: bool | None, credential: str) -> LookedUp:
    """Nothing was found. Where the canary was not seen either, the credential is not the right one."""
    unseen = seen is False
    return LookedUp(
        LookedUpKind.ABSENT,
        canary_seen=seen,
        detail=CANARY_UNSEEN if unseen else "",
        refused_credential=credential if unseen else "",
    )


def no_answer(why: Exception) -> LookedUp:
    """Unavailable, for one of NO_ANSWER."""
    return LookedUp(
        LookedUpKind.UNAVAILABLE,
        detail=str(why),
        refused_credential=why.credential if isinstance(why, CredentialRefused) else "",
        endless=isinstance(why, Endless),
    )


def not_answered(why: Exception) -> SendAnswer:
    """What became of a send, for one of NOT_ANSWERED. Where nobody was asked, it says nothing of who would
    have been."""
    if isinstance(why, NotNow | http.AddressRefused | http.OutOfTime):
        return SendAnswer(kind=SentKind.NOT_SENT, detail=str(why))
    kind = SentKind.NOT_SENT if isinstance(why, http.NotConnected) else SentKind.UNKNOWN
    return SendAnswer(kind=kind, detail=str(why), reachable=False)


def document(raw: bytes) -> object:
    """The answer's JSON. Unlike ours, a provider's answer may be a list, so it is read inside an object."""
    try:
        whole = read_json(b'{"answer":' + raw + b"}")
    except MalformedJson as error:
        raise Unreadable(f"its answer cannot be read: {error}") from None
    if set(whole) != {"answer"}:
        raise Unreadable("its answer cannot be read: it is not one document")
    return whole["answer"]


def next_in(link: str) -> str:
    """The address a Link header (RFC 8288) names as the next one; empty where it names none."""
    links = _LINK.findall(link)
    if link.strip() and not links:
        raise Unreadable("its Link header cannot be read")
    for address, parameters in links:
        if _NEXT.search(parameters):
            return str(address)
    return ""


def comparable(question: Question, content: Mapping[str, str]) -> bool:
    """Is enough of the arguments known to compare them? Of some intents only a hash is."""
    return question.args is not None or set(content) == {"args_hash"}


def content_of(
    item: Mapping[str, Any], question: Question, content: Mapping[str, str], *, caseless: str | None = None
) -> Literal["same", "other"]:
    """The same only if every configured value is, and at least one is there to be compared.

    `caseless`: the record pointer whose text means the same in capitals, as a currency's does.
    """
    compared = 0
    for argument, path in content.items():
        ours = question.args_hash if argument == "args_hash" else pointer(question.args, argument)
        theirs = pointer(item, path)
        if path == caseless:
            ours, theirs = _lower(ours), _lower(theirs)
        if canonical_bytes(ours) != canonical_bytes(theirs):
            return "other"
        compared += ours is not None
    return "same" if compared else "other"


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def state_of(item: Mapping[str, Any], words: StateWords) -> RecordState | None:
    """What the record's status means; None where nobody configured that word."""
    return words.always or words.words.get(status_of(item, words))


def status_of(item: Mapping[str, Any], words: StateWords) -> str:
    return as_word(pointer(item, words.pointer or ""))[:LONGEST_WORD]


def name_of(value: object) -> str:
    """A record's reference. Raises AdapterMisconfigured where it is longer than any that can be kept: then
    what was taken for one is something else."""
    name = as_word(value)
    if len(name) > LONGEST_NAME:
        raise AdapterMisconfigured(
            "", f"a record's reference has {len(name)} characters: {name[:LONGEST_WORD]}…"
        )
    return name


def unknown_words(words: set[str]) -> str:
    """The look-up's detail about status words nobody knows the meaning of; empty where there are none."""
    return (
        f"status words that are not configured: {', '.join(sorted(words))}"[:LONGEST_DETAIL] if words else ""
    )


def as_word(value: object) -> str:
    """A value as one word to compare or show: a text itself, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
