"""What the provider's own journal says of a schedule, beside what the ledger was told and believes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ledger.models import Attempt, Event, LookUp, Operation
from ledger.rules.looked_up import LookedUpKind
from ledger.rules.reports import Reported
from ledger.rules.states import State
from ledger.rules.vocabulary import ConfirmedBy, EventKind, FailedBy

NO_EFFECT = "failed"
Found = Iterator[tuple[str, str]]
"""Each as its kind and words."""


@dataclass(frozen=True)
class Effect:
    """One line of the provider's journal."""

    correlation_id: str
    id: str
    status: str
    key: str
    attempt: str
    sent_by: str
    at: float


def effects_in(journal: Path, marks: Sequence[str]) -> list[Effect]:
    """The effects of these operations that the provider counted."""
    wanted = set(marks)
    with journal.open(encoding="utf-8") as lines:
        effects = [Effect(**json.loads(line)) for line in lines if line.endswith("\n")]
    return [effect for effect in effects if effect.correlation_id in wanted and effect.status != NO_EFFECT]


@dataclass(frozen=True)
class Effects:
    """All effects of one tenant. `marks`: the correlation ids of its operations, by their numbers; `blind`:
    those whose look-ups may miss what was done; `resumed`: processes that came back after they were stopped,
    and when."""

    tenant_id: int
    marks: tuple[str, ...]
    blind: frozenset[str]
    resumed: Mapping[str, float]
    found: tuple[Effect, ...]

    @cached_property
    def attempts(self) -> dict[str, Attempt]:
        return Attempt.objects.filter(tenant_id=self.tenant_id).in_bulk()

    def of(self, operation: Operation) -> list[Effect]:
        mark = self.marks[number_of(operation)]
        return [effect for effect in self.found if effect.correlation_id == mark]

    @property
    def late(self) -> list[Effect]:
        """By processes that were stopped beyond their lease and came back: nobody can prevent these."""
        return [effect for effect in self.found if self._is_late(effect)]

    def _is_late(self, effect: Effect) -> bool:
        attempt = self.attempts.get(effect.attempt)
        over = None if attempt is None else attempt.lease_until or attempt.lease_ended_at
        came_back = self.resumed.get(effect.sent_by, float("inf"))
        return over is not None and effect.at >= max(came_back, over.timestamp())

    def _may_be_missed(self, effect: Effect) -> bool:
        """By a look-up that says *absent* in good faith."""
        return effect.correlation_id in self.blind or self._is_late(effect)

    def what_is_wrong(self, zombies: Counter[str]) -> Found:
        """In `zombies`: effects too many that are `late`, by the agent or by the ledger."""
        yield from self._of_one_attempt()
        yield from self._too_many(zombies)
        yield from self._of_deliveries()
        yield from self._not_believed()
        yield from self._not_seen()

    def _of_one_attempt(self) -> Found:
        """An attempt is sent once, whatever is stopped for how long; and all that is sent is one's."""
        for attempt_id, times in Counter(effect.attempt for effect in self.found).items():
            if attempt_id not in self.attempts:
                yield "effects", f"{times} were sent for no attempt: {attempt_id!r}"
            elif times > 1:
                yield "effects", f"{attempt_id} alone had {times}"

    def _too_many(self, zombies: Counter[str]) -> Found:
        """More effects than one, beside those that a person approved, and not because of somebody late."""
        late = set(self.late)
        for operation in Operation.objects.filter(tenant_id=self.tenant_id):
            seen = self.of(operation)
            excess = len(seen) - _allowed(operation)
            if 0 < excess <= len(late.intersection(seen)):
                zombies["agent" if any(e.sent_by.startswith("a") for e in seen) else "ledger"] += excess
            elif excess > 0:
                yield "effects", f"{operation.operation_key} had {excess} too many: {_words(seen)}"

    def _of_deliveries(self) -> Found:
        """Whoever delivers results has none."""
        for effect in self.found:
            if effect.sent_by.startswith("d"):
                yield "effects", f"a deliverer had one: {_words([effect])}"

    def _not_believed(self) -> Found:
        """What the ledger says has happened stands in the provider's books; what was said to have had no
        effect, or failed there, does not. What was cancelled or rejected ends where look-ups miss it."""
        for attempt in self._confirmed_by(ConfirmedBy.AGENT, ConfirmedBy.LOOKUP):
            if not self.of(attempt.operation):
                yield "untrue", f"{attempt} is confirmed by {attempt.confirmed_by}, and there is no effect"
        had_one = {effect.attempt for effect in self.found} & self.attempts.keys()
        for event in Event.objects.filter(kind=EventKind.OUTCOME_REPORTED, attempt_id__in=had_one):
            if event.data["outcome"] == Reported.FAILED and event.data.get("no_effect"):
                yield "untrue", f"{event.attempt_id} was said to have had no effect"
        for effect in self.found:
            sent = self.attempts.get(effect.attempt)
            if sent is None or sent.state != State.FAILED or sent.failed_by != FailedBy.LOOKUP:
                continue
            if sent.failure == "failed_there" or not self._may_be_missed(effect):
                yield "untrue", f"{sent} is taken for {sent.failure}, and had an effect"

    def _confirmed_by(self, *whom: ConfirmedBy) -> Iterator[Attempt]:
        confirmed = Attempt.objects.filter(tenant_id=self.tenant_id, state=State.OUTCOME_CONFIRMED)
        yield from confirmed.filter(confirmed_by__in=whom).select_related("operation")

    def _not_seen(self) -> Found:
        """No look-up that can see says *absent* of what was done before it began."""
        absent = LookUp.objects.filter(attempt_id__in=self.attempts, answer=LookedUpKind.ABSENT)
        for answer in absent.exclude(row="unavailable"):
            attempt = self.attempts[answer.attempt_id]
            before = answer.asked_at.timestamp() if answer.asked_at else 0.0
            missed = [e for e in self.found if e.attempt == attempt.pk and e.at < before]
            if not all(map(self._may_be_missed, missed)):
                yield "untrue", f"{attempt} was absent to {answer.pk}: {_words(missed)}"


def number_of(operation: Operation) -> int:
    return int(operation.operation_key.partition(":")[2])


def _allowed(operation: Operation) -> int:
    """One automatic send, where there was one, and each send with approval."""
    sent = operation.attempts.filter(dispatched_at__isnull=False)
    approved = sent.filter(approval_use__isnull=False).count()
    return approved + int(sent.count() > approved)


def _words(effects: Sequence[Effect]) -> str:
    return "; ".join(f"{e.id} by {e.sent_by} for {e.attempt} at {e.at:.3f}" for e in effects)
