"""The attempt machine as the domain tells it: one operation in plain values, without database or rules.

Every method is one thing that can happen; it changes the model as the domain says and, where somebody asked
for something, answers with what they must have been told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from tests.ledger.lifecycle.machine.values import (
    ASKED,
    FINAL,
    MAY_HAVE_HAPPENED,
    PRICES,
    Tool,
    Tried,
    World,
)


@dataclass
class Operation:
    """The operation with all its attempts, oldest first."""

    tool: Tool
    world: World
    tried: list[Tried] = field(default_factory=list)
    cancelled: bool = False

    # --- questions -----------------------------------------------------------------------------------------

    @property
    def confirmed(self) -> Tried | None:
        return next((a for a in self.tried if a.state == "OUTCOME_CONFIRMED"), None)

    @property
    def live(self) -> Tried | None:
        return next((a for a in self.tried if a.live), None)

    @property
    def in_conflict(self) -> bool:
        return any(a.conflict for a in self.tried)

    @property
    def held_variant(self) -> Tried | None:
        return next((a for a in self.tried if a.held and a.number > 1), None)

    def another_maybe_sent(self, than: Tried) -> bool:
        return any(a.maybe_sent and a is not than and (a.state in ASKED or a.conflict) for a in self.tried)

    def ever_held(self, a: Tried) -> bool:
        """Was it, or what it descends from?"""
        return a.ever_held or (a.parent is not None and self.ever_held(self.tried[a.parent - 1]))

    def line(self, of: Tried) -> Iterator[Tried]:
        numbers = {of.number}
        for a in self.tried:
            if a is of or a.parent in numbers:
                numbers.add(a.number)
                yield a

    def speaker(self, of: Tried) -> Tried:
        line = list(self.line(of))
        newest = next((a for a in reversed(line) if a.sent and a.live), line[-1])
        while newest.is_over and of.parent is not None:
            of = self.tried[of.parent - 1]
            newest = next((a for a in self.line(of) if a.live), newest)
        return newest

    def sends(self) -> int:
        return sum(a.dispatched for a in self.tried)

    def wants_review(self, rule: str) -> bool:
        return self.tool.review_always or rule == "review"

    @property
    def used(self) -> int:
        return sum(a.reserved + a.posted for a in self.tried)

    @property
    def money_reserved(self) -> Decimal:
        return sum((PRICES[a.content] for a in self.tried if a.reserved), Decimal(0))

    @property
    def money_spent(self) -> Decimal:
        return sum((PRICES[a.content] for a in self.tried if a.posted), Decimal(0))

    def has_room_for(self, a: Tried) -> bool:
        calls, money = self.world.limit, self.world.money_limit
        paid = self.money_reserved + self.money_spent + PRICES[a.content]
        return (calls is None or self.used + 1 <= calls) and (money is None or paid <= money)

    def outcome(self) -> str:
        """The fold of the domain, for a machine without relinked operations."""
        if self.confirmed:
            return "confirmed"
        counted = [a for a in self.tried if not a.held and a.state != "SUPERSEDED"]
        variants = [a for a in counted if a.number > 1 and a.parent is None and a.reason == "rejected"]
        counted = [a for a in counted if a.dispatched or a not in variants] or counted
        if not counted or any(a.live or (a.maybe_sent and a.state in ASKED) for a in counted):
            return "open"
        return "cancelled" if counted[-1].state == "CANCELLED" else "failed"

    # --- moves ---------------------------------------------------------------------------------------------

    def go(self, a: Tried, to: str, *, person: bool = False, relinked: bool = False) -> None:
        """One move with what always belongs to it: votes, conflict, reservation."""
        a.state = to
        if to in FINAL or to == "FAILED_RETRYABLE":
            a.approval, a.votes = None, {}
        a.conflict = False
        if to not in ASKED:
            a.evidence = []
        if to == "FAILED_RETRYABLE":
            a.resting = True
        self._book(a, spend=(to == "SUPERSEDED" and not relinked) or (to == "FAILED" and person))

    def _book(self, a: Tried, *, spend: bool) -> None:
        if a.state in MAY_HAVE_HAPPENED:
            a.reserved = a.reserved or int(a.dispatched)
        elif a.state == "OUTCOME_CONFIRMED":
            a.reserved, a.posted = 0, a.said_calls or 1
        else:
            a.posted += a.reserved if spend else 0
            a.reserved = 0

    def void(self, a: Tried) -> None:
        a.approval, a.votes = None, {}
        if a.state == "INTENT_RECORDED" and a.ever_held:
            self.go(a, "MANUAL_REVIEW")
            a.reason = "approval_expired"

    def sweep(self) -> None:
        """What a pass takes back: every yes whose ground has changed since it was given."""
        lost = not (self.world.key_live and self.world.tenant_active)
        for a in self.tried:
            if a.approval is not None and (lost or a.approval.since != self.world.since):
                self.void(a)
            a.votes = (
                {} if lost else {who: since for who, since in a.votes.items() if since == self.world.since}
            )

    def void_all(self) -> None:
        for a in self.tried:
            self.void(a)

    def to_review(self, a: Tried, reason: str) -> None:
        if a.state == "DISPATCHED":
            self.lose(a)
        self.go(a, "MANUAL_REVIEW")
        a.reason, a.conflict = reason, reason == "conflict"

    def lose(self, a: Tried) -> None:
        """Contact is lost."""
        self.go(a, "UNKNOWN")
        a.reason = ""

    def contradict(self, a: Tried, *named: set[str]) -> None:
        if a.state in FINAL:
            a.evidence = a.evidence if a.conflict else []
            a.conflict = True
        else:
            self.to_review(a, "conflict")
        a.evidence += named

    def confirm(self, a: Tried, *, name: str) -> None:
        self.go(a, "OUTCOME_CONFIRMED")
        a.result, a.positive, a.conflict = name or a.result, True, False
        self.void_all()
        for other in self.tried:
            effects = ([other.own] if other.own else []) + other.evidence
            if other is not a and other.conflict and effects and all(a.own & named for named in effects):
                self.close_conflict(other)

    def happened(self, a: Tried, name: str) -> None:
        """It exists under this name; where another attempt is confirmed: the same effect, or a second."""
        if self.confirmed is None:
            self.confirm(a, name=name)
        elif name in self.confirmed.own:
            self.go(a, "SUPERSEDED", person=True)
        else:
            self.void_all()
            self.contradict(a, {name})

    def close_conflict(self, a: Tried) -> None:
        a.conflict = False
        if a.state not in FINAL:
            self.go(a, "SUPERSEDED", person=True)

    # --- what agents ask -----------------------------------------------------------------------------------

    def post(self, content: str) -> str:
        """An intent with this content. Answers created, replayed, held, key_reused or refused."""
        world = self.world
        if not (world.key_live and world.tenant_active) or (not self.tried and world.rule == "none"):
            return "refused"
        same = [a for a in self.tried if a.content == content]
        if self.tried and not same:
            return self._post_variant(content)
        if not same:
            first = self.insert(content, held=self.wants_review(world.rule))
            return "held" if first.held else "created"
        speaker = self.speaker(same[-1])
        if speaker.held and speaker.number > 1 and speaker.parent is None:
            return "key_reused"
        if not self._follow_rule(speaker):
            return "refused"
        return "held" if speaker.held else "replayed"

    def _post_variant(self, content: str) -> str:
        if self.held_variant is None:
            if self.world.rule == "none":
                return "refused"
            self.insert(content, held=True)
        return "key_reused"

    def insert(self, content: str, *, held: bool = False, parent: Tried | None = None) -> Tried:
        a = Tried(len(self.tried) + 1, content, self.world.rule, parent.number if parent else None)
        if held:
            a.state, a.ever_held = "MANUAL_REVIEW", True
        self.tried.append(a)
        return a

    def _follow_rule(self, a: Tried) -> bool:
        """False where the policy now refuses what was never sent."""
        if a.state != "INTENT_RECORDED" or a.ever_held or a.rule == self.world.rule:
            return True
        if self.world.rule == "none":
            return False
        if self.wants_review(self.world.rule):
            self.go(a, "MANUAL_REVIEW")
            a.ever_held = True
        else:
            a.rule = self.world.rule
        return True

    def leave(self, asked: Tried) -> Tried | None:
        """The attempt that may be sent, or None."""
        a = self.speaker(asked)
        if not self._may_be_asked_for(a) or not self._follow_rule(a):
            return None
        if a.state == "FAILED_RETRYABLE" and self.ever_held(a):
            self.to_review(a, "approval")
        if a.held or not self._allowed(a):
            return None
        approved = a.approval is not None
        a.approval, a.votes = None, {} if approved else a.votes
        sent = a if a.state == "INTENT_RECORDED" else self.insert(a.content, parent=a)
        if sent is not a:
            self.go(a, "SUPERSEDED")
        sent.dispatched, sent.state = True, "DISPATCHED"
        sent.reserved = 1
        return sent

    def _may_be_asked_for(self, a: Tried) -> bool:
        if self.confirmed or self.in_conflict or self.another_maybe_sent(a) or a.state in FINAL:
            return False
        if a.state == "DISPATCHED" or a.resting:
            return False
        if a.state in ASKED:
            return a.approval is not None and self.fresh_absent(a)
        return self.held_variant is None

    def fresh_absent(self, a: Tried) -> bool:
        if not self.tool.looks_up or not a.sent:
            return True
        return a.settled and a.last_answer == "absent"

    def _allowed(self, a: Tried) -> bool:
        world, approval = self.world, a.approval
        open_ = world.key_live and world.tenant_active and not self.cancelled and world.rule != "none"
        left = self.has_room_for(a)
        if a.ever_held or a.state in ASKED:
            enough = approval is not None and len(approval.voters) >= self.tool.approvals
            return open_ and left and enough and approval is not None and approval.since == world.since
        changed = world.rule not in ("none", a.rule)
        doubtful = a.by_absent or any(b.doubtful for b in self.tried if b.number < a.number)
        unprotected = a.dispatched and doubtful and not self.tool.idempotent and not self.tool.read
        used_up = self.sends() >= self.tool.max_attempts
        if a.state == "FAILED_RETRYABLE" and (changed or unprotected or used_up):
            self.to_review(a, "authority")
            return False
        return open_ and left and not (changed or unprotected or used_up)

    def cancel(self) -> None:
        if self.cancelled:
            return
        self.cancelled = True
        self.void_all()
        for a in self.tried:
            if a.state == "INTENT_RECORDED" or a.held:
                self.go(a, "CANCELLED")
            elif a.state == "FAILED_RETRYABLE" or (a.whether_to_send and a.known_to_be_nothing):
                self.go(a, "FAILED")
            elif a.whether_to_send and self.live in (None, a):
                self.lose(a)
