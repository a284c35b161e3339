"""One pass of the reconciler: several providers and attempts are asked about at once.

1. Where a place is free, attempts are claimed, each provider in its turn.
2. Each is asked about in a thread, outside any transaction.
3. What the answers say of the provider is noted, and the free places are filled again.
4. The answers are applied, while others are under way.

Killed anywhere, the leases run out and it is asked again.
"""

from __future__ import annotations

import logging
import random
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from ledger.faults import fault_point
from ledger.lifecycle import PLAIN, Answered, Asked, apply_answer, confirm_plain
from ledger.providers.base import Question
from ledger.providers.pace import shared
from ledger.pulses import beat
from ledger.reconciliation.apart import apart
from ledger.reconciliation.asking import answer_about, first_sends, question_about
from ledger.reconciliation.claims import Claim, claim_in, due_lanes
from ledger.reconciliation.errands import PassIsOver, Threads, TurnsByErrand
from ledger.reconciliation.health import note_answer
from ledger.reconciliation.places import PLACES, Places
from ledger.reconciliation.turns import SharedTurns
from ledger.rules.looked_up import ANSWERED, LookedUp, LookedUpKind
from ledger.transactions import durable, monotonic_s

logger = logging.getLogger(__name__)

BATCH = 2_000
PASS_S = 3.0


@dataclass
class ReconcileReport:
    """How many look-ups one pass made, which row of the recovery table decided each, and whether it stopped
    before everything due was asked about."""

    looked_up: int = 0
    more: bool = False
    stale: int = 0
    rows: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Answer:
    """What one look-up brought; nothing where it was lost with an error. It is asked about again."""

    claim: Claim
    places: Places
    looked_up: LookedUp | None
    took_s: float

    @property
    def is_readable(self) -> bool:
        unreadable = (LookedUpKind.UNAVAILABLE, LookedUpKind.ADAPTER_FAILED)
        return self.looked_up is not None and self.looked_up.kind not in unreadable


def reconcile_once(*, at_most: int = BATCH) -> ReconcileReport:
    """Ask about attempts that are due, at most so many or for a few seconds, and wait for the answers. Each
    attempt is claimed only when it is asked about at once, so that a slow provider never lets the lease of
    another one run out. One whose answer cannot be applied is asked about again when its lease is over, and
    keeps no other waiting."""
    threads: Threads[Answer] = Threads(PLACES)
    this = _Pass(threads, at_most)
    try:
        with shared(TurnsByErrand(threads, SharedTurns())):
            this.run()
    finally:
        threads.close()
    beat("reconcile")
    return this.report


class _Pass:
    """Its lanes are asked in an order that favours none."""

    def __init__(self, threads: Threads[Answer], at_most: int) -> None:
        self.report = ReconcileReport()
        self._threads, self._left = threads, at_most
        self._ends_at = monotonic_s() + PASS_S
        lanes = due_lanes()
        self._lanes = deque(map(Places, random.sample(lanes, len(lanes))))

    def run(self) -> None:
        self._fill()
        while self._threads.under_way:
            answers = self._threads.answers()
            fault_point("reconciler.answered")
            _give_back(answers)
            self._fill()
            self._apply(answers)

    def _fill(self) -> None:
        """Ask about what is due where a place is free; a lane in which nothing more is due is left."""
        for _ in range(len(self._lanes)):
            if self._is_over():
                self.report.more = True
                self._lanes.clear()
                return
            places = self._lanes.popleft()
            free = min(places.free, PLACES - self._threads.under_way, self._left)
            if free <= 0 or self._claim(places, free):
                self._lanes.append(places)

    def _is_over(self) -> bool:
        return self._left <= 0 or monotonic_s() >= self._ends_at

    def _claim(self, places: Places, free: int) -> bool:
        claims = claim_in(places.lane, at_most=free)
        if claims:
            fault_point("reconciler.claimed")
            sends = first_sends([claim.attempt.operation_id for claim in claims])
        for claim in claims:
            question = apart(claim.attempt_id, partial(question_about, claim.attempt, sends))
            if question is not None:
                places.taken += 1
                self._threads.begin(partial(_ask, claim, places, question))
        self._left -= len(claims)
        self.report.looked_up += len(claims)
        return bool(claims)

    def _apply(self, answers: Iterable[Answer]) -> None:
        """Most say the same, and are applied together; all others, and all where that failed, each alone."""
        heard = [(answer.claim, answer.looked_up) for answer in answers if answer.looked_up is not None]
        done = apart("several attempts", partial(self._apply_plain, heard)) if len(heard) > 1 else None
        self._threads.run_errands()
        for claim, looked_up in heard:
            if claim.attempt_id not in (done or ()):
                apart(claim.attempt_id, partial(self._apply_one, claim, looked_up))
                self._threads.run_errands()

    def _apply_plain(self, heard: Iterable[tuple[Claim, LookedUp]]) -> set[str]:
        answered = [
            Answered(claim.attempt_id, claim.attempt.operation_id, _asked(claim), looked_up)
            for claim, looked_up in heard
        ]
        done = durable(lambda: _confirmed(answered))
        self.report.rows.update([PLAIN] * len(done))
        return done

    def _apply_one(self, claim: Claim, looked_up: LookedUp) -> None:
        follows = durable(lambda: _applied(claim, looked_up))
        if follows is None:
            self.report.stale += 1
        else:
            self.report.rows[follows] += 1


def _confirmed(answered: Iterable[Answered]) -> set[str]:
    done = confirm_plain(answered)
    fault_point("reconciler.before_commit")
    return done


def _applied(claim: Claim, looked_up: LookedUp) -> str | None:
    """The row of the recovery table that decided; None where somebody else asks by now."""
    follows = apply_answer(
        attempt_id=claim.attempt_id,
        epoch=claim.epoch,
        asked_at=claim.at,
        provider=claim.provider,
        looked_up=looked_up,
    )
    fault_point("reconciler.before_commit")
    return follows.row if follows else None


def _asked(claim: Claim) -> Asked:
    return Asked(claim.epoch, claim.at, claim.provider)


def _ask(claim: Claim, places: Places, question: Question) -> Answer:
    """In a thread."""
    began_s = monotonic_s()
    try:
        looked_up = answer_about(claim.attempt, claim.provider, question)
    except PassIsOver:
        looked_up = None
    except Exception:
        logger.exception("The look-up of %s was lost", claim.attempt_id)
        looked_up = None
    return Answer(claim, places, looked_up, monotonic_s() - began_s)


def _give_back(answers: Sequence[Answer]) -> None:
    """The places they took; and what they say of their providers is known before these are asked again."""
    for answer in answers:
        answer.places.answered(readable=answer.is_readable, took_s=answer.took_s)
    for places in {id(answer.places): answer.places for answer in answers}.values():
        of_one = [answer for answer in answers if answer.places is places]
        apart(of_one[0].claim.attempt_id, partial(_note, of_one))


def _note(answers: Iterable[Answer]) -> None:
    """Of answers in a row that are as they should be, one says it all."""
    was_well = False
    for answer in answers:
        provider, looked_up = answer.claim.provider, answer.looked_up
        if provider is None or looked_up is None or looked_up.endless:
            continue
        if looked_up.kind is LookedUpKind.NO_LOOKUP:  # it was not asked
            continue
        is_well = looked_up.kind in ANSWERED and not looked_up.refused_credential
        if not (is_well and was_well):
            note_answer(provider, looked_up.kind, refused_credential=looked_up.refused_credential)
        was_well = is_well
