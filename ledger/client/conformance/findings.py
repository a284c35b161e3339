"""What was sent, what was wrong with the answers and effects, and the table of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Fault(StrEnum):
    """What a consumer does wrong, as it is told to its author."""

    REFUSED_GOOD = "refused a good message"
    REWRITES_JSON = "verifies JSON that it wrote anew, not the bytes it received"
    ACKNOWLEDGED_FORGERY = "acknowledged a forgery"
    ACKNOWLEDGED_OLD = "acknowledged a message whose time is over: anybody who kept it can send it again"
    APPLIED_FORGERY = "applied what it should have refused"
    NOT_APPLIED = "acknowledged a result and did not apply it"
    APPLIED_TWICE = "applied a result twice"
    APPLIED_OUTDATED = "applied an older settlement after a newer one"
    REFUSED_UNKNOWN = "refused what a later version may send: it would be sent until it is a dead letter"
    APPLIED_UNKNOWN = "applied a type of event that it cannot know"
    LOST = "lost a result at a crash: it is marked as taken, and was not applied"
    TWICE_AFTER_CRASH = "applied a result twice after a crash"
    ANSWERED_EARLY = "answered 2xx before its work was committed: a crash then lost it"
    DID_NOT_RETURN = "did not accept a result any more after a crash"


@dataclass(frozen=True)
class Expected:
    """How often one message is to have been applied, and what it is otherwise."""

    webhook_id: str
    times: int
    fewer: Fault = Fault.NOT_APPLIED
    more: Fault = Fault.APPLIED_TWICE

    def fault(self, seen: int) -> Fault | None:
        if seen == self.times:
            return None
        return self.fewer if seen < self.times else self.more


@dataclass
class Check:
    """One row of the table."""

    name: str
    sent: int = 0
    faults: dict[Fault, list[str]] = field(default_factory=dict)
    expected: list[Expected] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def found(self, fault: Fault, detail: str) -> None:
        self.faults.setdefault(fault, []).append(detail)

    def expect(
        self,
        webhook_id: str,
        times: int,
        *,
        fewer: Fault = Fault.NOT_APPLIED,
        more: Fault = Fault.APPLIED_TWICE,
    ) -> None:
        one = Expected(webhook_id, times, fewer, more)
        if one not in self.expected:
            self.expected.append(one)

    def judge(self, applied: Mapping[str, int]) -> None:
        for one in self.expected:
            seen = applied.get(one.webhook_id, 0)
            if (fault := one.fault(seen)) is not None:
                self.found(fault, f"{one.webhook_id}: applied {seen} times instead of {one.times}")


@dataclass(frozen=True)
class Report:
    """`effects_counted`: without, only the answers were judged."""

    checks: tuple[Check, ...]
    effects_counted: bool
    killed: int

    @property
    def faults(self) -> frozenset[Fault]:
        return frozenset(fault for check in self.checks for fault in check.faults)

    def table(self) -> str:
        """Plain text for a terminal: a row for each check, below it what was wrong."""
        width = max(len(check.name) for check in self.checks)
        lines = [f"{'check':{width}}  sent  result"]
        for check in self.checks:
            lines.append(f"{check.name:{width}}  {check.sent:4}  {'WRONG' if check.faults else 'ok'}")
            lines += [f"    {fault} ({_shortly(details)})" for fault, details in check.faults.items()]
            lines += [f"    note: {note}" for note in check.notes]
        return "\n".join([*lines, "", *self._remarks(), self._verdict()])

    def _remarks(self) -> list[str]:
        remarks = []
        if not self.effects_counted:
            remarks.append(
                "Effects were not counted (--effects-url, --effects-file): only answers were judged."
            )
        if not self.killed:
            remarks.append("Nothing was killed (--start): what a crash does was not seen.")
        return remarks

    def _verdict(self) -> str:
        if not self.faults:
            return "No fault was found."
        return "\n".join(["What is wrong:", *(f"  - it {fault}" for fault in sorted(self.faults))])


def _shortly(details: list[str]) -> str:
    more = f", and {len(details) - 2} more" if len(details) > 2 else ""
    return "; ".join(details[:2]) + more
