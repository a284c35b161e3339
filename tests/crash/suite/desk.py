"""The desk child: people who press at random in the chaos, and answer from the truth after it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import close_old_connections

from ledger.lifecycle import Decided, DecisionRefused
from ledger.lifecycle.values import UnknownObject
from ledger.models import Decision, ReviewItem, User
from ledger.rules.vocabulary import DecisionKind, ReviewReason
from review import decisions, ownership
from review.door import NotPermitted, NotVisible
from tests.crash.suite import letters
from tests.crash.suite.agent import Journal
from tests.crash.suite.children import Line
from tests.crash.suite.injection import Injector
from tests.crash.suite.tenants import DECIDING

WHY = "checked at the provider"
FEW_TRIES = 3
"""After so many a person takes the provider's key for spoilt, and a look-up for no help."""
REFUSALS = (DecisionRefused, NotPermitted, NotVisible, UnknownObject)
Press = Callable[[User, str], Decided]


@dataclass(frozen=True)
class Truth:
    """What the provider really did: the references of its effects."""

    references: tuple[str, ...]

    @property
    def newest(self) -> str:
        return self.references[-1] if self.references else "thing_unseen"


BY_TWO = ("approve", "happened", "did_not", "reject")
"""Of dangerous effects one person alone settles none of these."""


def press_named(kind: str, truth: Truth) -> Press:
    """One press by its name."""
    presses: dict[str, Press] = {
        "approve": lambda by, item: decisions.approve(by, item, why=WHY),
        "approve_new_key": lambda by, item: decisions.approve(by, item, why=WHY, new_provider_key=True),
        "reject": lambda by, item: _reject(by, item, truth),
        "happened": lambda by, item: decisions.confirm_happened(by, item, why=WHY, reference=truth.newest),
        "did_not": lambda by, item: decisions.confirm_did_not_happen(by, item, why=WHY),
        "recheck": lambda by, item: decisions.recheck(by, item, why=WHY),
        "arguments": _correct,
        "note": lambda by, item: ownership.note(by, item, why=WHY),
        "assign": lambda by, item: ownership.assign(by, item, to=by.get_username(), why=WHY),
        "conflict_happened": lambda by, item: decisions.decide_conflict(
            by, item, why=WHY, answer="happened", reference=truth.newest
        ),
        "conflict_duplicate": lambda by, item: decisions.decide_conflict(
            by, item, why=WHY, answer="duplicate"
        ),
        "conflict_stands": lambda by, item: decisions.decide_conflict(by, item, why=WHY, answer="stands"),
    }
    return presses[kind]


def _reject(by: User, item_id: str, truth: Truth) -> Decided:
    attempt = ReviewItem.objects.select_related("attempt").get(pk=item_id).attempt
    if not attempt.was_sent:
        return decisions.reject(by, item_id, why=WHY)
    what = "happened" if truth.references else "did_not"
    return decisions.reject(by, item_id, why=WHY, what=what, reference=truth.newest)


def _correct(by: User, item_id: str) -> Decided:
    args = ReviewItem.objects.select_related("attempt").get(pk=item_id).attempt.args
    return decisions.relink_arguments(by, item_id, why=WHY, typed=json.dumps({**(args or {}), "amount": 99}))


def answers_to(item: ReviewItem, truth: Truth) -> tuple[str, ...]:
    """What a person who has seen the provider's books tries, until one of it is possible."""
    attempt = item.attempt
    if item.reason == ReviewReason.CONFLICTING_EVIDENCE and attempt.is_final:
        if not truth.references:
            return ("conflict_stands",)
        return ("conflict_happened", "conflict_duplicate", "conflict_stands")
    if truth.references:
        return ("happened", "conflict_duplicate", "recheck", "reject")
    if not attempt.was_sent:
        return ("approve", "reject")
    if (
        item.reason == ReviewReason.CONFLICTING_EVIDENCE
    ):  # something was once seen: no absent makes it approvable
        return ("did_not", "reject")
    in_vain = attempt.number > FEW_TRIES or item.reason == ReviewReason.ATTEMPTS_USED_UP
    asked = Decision.objects.filter(item=item, kind=DecisionKind.RECHECK).count()
    approve = "approve_new_key" if in_vain else "approve"
    return (approve, *(("recheck",) if asked < FEW_TRIES else ()), "did_not", "reject")


def work(line: Line, injector: Injector) -> None:
    """Press what the lane asks for until killed."""

    def answer(command: dict[str, Any]) -> Any:
        if "faults" in command:
            injector.obey(command)
            return None
        close_old_connections()
        if command["do"] == "letter":
            return _letter(command)
        desk = _Desk(command["tenant_id"], command["slug"], Journal(Path(command["journal"])))
        if command["do"] == "press":
            return desk.press_any(command["kind"], command["truths"])
        return desk.answer(command["item"], Truth(tuple(command["references"])))

    line.answer_forever(answer)


def _letter(command: dict[str, Any]) -> str:
    """What people do about deliveries; `subject`: about this one."""
    kind, subject = command["kind"], command["subject"] or letters.subject_of(command)
    if subject is None:
        return "nothing there"
    answered = letters.press(kind, subject, slug=command["slug"])
    if answered.startswith("pressed"):
        Journal(Path(command["journal"])).write(said="letter", kind=kind, subject=subject)
    return answered


@dataclass(frozen=True)
class _Desk:
    tenant_id: int
    slug: str
    journal: Journal

    def press_any(self, kind: str, truths: dict[str, list[str]]) -> str:
        """In the chaos: one press on the newest open item, by the first person of it who may."""
        item = self._open().order_by("-pk").first()
        if item is None:
            return "nothing open"
        references = truths.get(item.operation.operation_key, [])
        return self._press(kind, item.pk, Truth(tuple(references)))

    def answer(self, item_id: str, truth: Truth) -> str:
        """Afterwards: everything that the truth suggests, until one is possible."""
        item = ReviewItem.objects.select_related("attempt").get(pk=item_id)
        said: list[str] = []
        for kind in answers_to(item, truth):
            if kind == "recheck" and said and said[0].endswith(": authority"):
                continue  # no look-up gives authority back
            said.append(self._press(kind, item_id, truth))
            if said[-1].startswith("pressed"):
                break
        return "; ".join(said)

    def _press(self, kind: str, item_id: str, truth: Truth) -> str:
        """By the first who may and, where two are needed, by the next one too: whoever corrected something
        dangerous does not approve it."""
        said: list[str] = []
        wanted = 2 if kind.startswith(BY_TWO) else 1
        for name in DECIDING:
            by = User.objects.get(username=f"{name}-{self.slug}")
            try:
                decided = press_named(kind, truth)(by, item_id)
            except NotPermitted:
                said.append(f"{kind} refused: NotPermitted")
                continue
            except REFUSALS as refused:
                said.append(f"{kind} refused: {getattr(refused, 'code', type(refused).__name__)}")
                break
            self.journal.write(said="decided", decision=decided.decision.pk, kind=kind)
            said.insert(0, f"pressed {kind}")
            if len(said) >= wanted and said[wanted - 1].startswith("pressed"):
                break
        return ", ".join(said)

    def _open(self) -> Any:
        return ReviewItem.objects.filter(tenant_id=self.tenant_id, closed_at=None).select_related("operation")
