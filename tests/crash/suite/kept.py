"""What an actor was told and wrote down before it went on, and whether it is still true."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ledger.models import Attempt, Decision, Event, Operation
from ledger.rules.states import State
from ledger.rules.vocabulary import EventKind

Said = dict[str, Any]


@dataclass(frozen=True)
class Kept:
    """The journals of the actors, and the directories in which agents keep reports that wait."""

    journals: tuple[Path, ...]
    spools: tuple[Path, ...]

    def what_is_wrong(self) -> Iterator[tuple[str, str]]:
        """Acknowledgements that are no longer true."""
        for journal in self.journals:
            for line in journal.read_text(encoding="utf-8").splitlines() if journal.exists() else ():
                said = json.loads(line)
                if not _CHECKS[said["said"]](said) and not self._waits(said):
                    yield "lost", line

    def _waits(self, said: Said) -> bool:
        """Is it what an agent reports, and still on its disk?"""
        files = (path for spool in self.spools for path in spool.rglob("*") if path.is_file())
        return "reference" in said and any(
            said["reference"] in path.read_text(errors="replace") for path in files
        )


def _is_intent_kept(said: Said) -> bool:
    return Attempt.objects.filter(pk=said["attempt"], args_hash=said["args_hash"]).exists()


def _is_leave_kept(said: Said) -> bool:
    dispatched = Event.objects.filter(attempt_id=said["attempt"], kind=EventKind.DISPATCHED)
    return (
        dispatched.exists()
        and Attempt.objects.filter(pk=said["attempt"], dispatched_at__isnull=False).exists()
    )


def _is_reference_kept(said: Said) -> bool:
    named = Event.objects.filter(attempt_id=said["attempt"], kind=EventKind.PROVIDER_REQUEST)
    return any(event.data["provider_request_id"] == said["reference"] for event in named)


def _is_report_kept(said: Said) -> bool:
    reported = Event.objects.filter(attempt_id=said["attempt"], kind=EventKind.OUTCOME_REPORTED)
    return any(event.data["result_ref"] == said["reference"] for event in reported)


def _is_outcome_kept(said: Said) -> bool:
    confirmed = said["state"] == State.OUTCOME_CONFIRMED
    stands = Attempt.objects.filter(pk=said["attempt"], state=State.OUTCOME_CONFIRMED)
    return _is_report_kept(said) and (not confirmed or stands.exists())


def _is_cancelled(said: Said) -> bool:
    return Operation.objects.filter(pk=said["operation"], cancelled_at__isnull=False).exists()


def _is_decided(said: Said) -> bool:
    return Decision.objects.filter(pk=said["decision"]).exists()


def _is_letter_answered(said: Said) -> bool:
    """Of pauses nothing is kept that the next one does not change."""
    kind = _LETTERS.get(said["kind"])
    about = Event.objects.filter(kind=kind, body__contains=said["subject"])
    return kind is None or about.exists()


_LETTERS = {"redeliver": EventKind.DELIVERY_REDELIVERED, "give_up": EventKind.DELIVERY_DEAD_LETTERED}
_CHECKS: Mapping[str, Callable[[Said], bool]] = {
    "intent": _is_intent_kept,
    "leave": _is_leave_kept,
    "named": _is_reference_kept,
    "kept": _is_report_kept,
    "outcome": _is_outcome_kept,
    "cancelled": _is_cancelled,
    "decided": _is_decided,
    "letter": _is_letter_answered,
}
