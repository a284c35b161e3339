"""What people decide about the model's operation; each answers whether it was possible."""

from __future__ import annotations

from tests.ledger.lifecycle.machine.model import Operation
from tests.ledger.lifecycle.machine.values import ASKED, FINAL, Approval, Tried


def _asked(a: Tried) -> bool:
    return a.state in ASKED and a.sent


def approve(op: Operation, a: Tried, who: str) -> bool:
    if not _approvable(op, a):
        return False
    since = op.world.since
    if a.approval is not None and a.approval.since != since:
        op.void(a)
    current = {voter: given for voter, given in a.votes.items() if given == since}
    a.votes = {**current, who: since}
    if len(a.votes) < op.tool.approvals:
        return True
    from_desk, voters = a.held, frozenset(a.votes)
    if from_desk:
        for b in op.tried:
            if b is not a and a.number > 1 and b.state in ("INTENT_RECORDED", "FAILED_RETRYABLE"):
                op.go(b, "SUPERSEDED", person=True)
        op.go(a, "INTENT_RECORDED")
    a.votes = {}
    a.approval = Approval(since, voters)
    return True


def _approvable(op: Operation, a: Tried) -> bool:
    waits = a.state == "INTENT_RECORDED" and a.ever_held
    if not (a.state in ASKED or waits) or a.closed or op.confirmed or op.in_conflict:
        return False
    if not (op.fresh_absent(a) or a.approval):
        return False
    gives_way = a.held and a.number > 1
    others = [b for b in op.tried if b is not a and b.live]
    if any(not (gives_way and b.state in ("INTENT_RECORDED", "FAILED_RETRYABLE")) for b in others):
        return False
    world = op.world
    left = op.has_room_for(a)
    open_ = world.key_live and world.tenant_active and not op.cancelled and world.rule != "none"
    return not op.another_maybe_sent(a) and open_ and left


def reject(op: Operation, a: Tried, what: str, name: str) -> bool:
    waits = a.state == "INTENT_RECORDED" and a.ever_held
    if not (a.state in ASKED or waits) or (a.sent and what == "did_not" and a.seen_there):
        return False
    op.void(a)
    if not a.sent:
        op.go(a, "FAILED", person=True)
        a.reason = "rejected"
        return True
    a.closed = True
    if what == "happened":
        op.happened(a, name)
    elif what == "did_not":
        op.go(a, "FAILED", person=True)
        a.reason = "rejected"
    elif a.state == "UNKNOWN" or a.whether_to_send:
        op.to_review(a, "unresolved")
    return True


def happened(op: Operation, a: Tried, name: str) -> bool:
    if not _asked(a):
        return False
    op.happened(a, name)
    return True


def did_not_happen(op: Operation, a: Tried) -> bool:
    if not _asked(a) or a.seen_there:
        return False
    op.go(a, "FAILED", person=True)
    a.reason = ""
    return True


def recheck(op: Operation, a: Tried) -> bool:
    if not (op.tool.looks_up and _asked(a)) or any(b.live and b is not a for b in op.tried):
        return False
    if a.state == "MANUAL_REVIEW":
        op.lose(a)
    return True


def name_record(op: Operation, a: Tried, name: str) -> bool:
    if not recheck(op, a):
        return False
    op.void_all()
    a.positive = True
    if a.request:
        a.result = name
    else:
        a.request = name
    return True


def correct(op: Operation, a: Tried, content: str) -> bool:
    known = any(b.content == content for b in op.tried)
    variant = op.held_variant
    if a.state not in ASKED or op.confirmed or op.world.rule == "none" or known or variant not in (None, a):
        return False
    if a.held:
        op.go(a, "SUPERSEDED", relinked=True)
    else:
        op.void(a)
    op.insert(content, held=True, parent=a)
    return True


def decide_conflict(op: Operation, a: Tried, answer: str, name: str) -> bool:
    if not a.conflict:
        return False
    other = op.confirmed is not None and op.confirmed is not a
    possible = {"happened": op.confirmed is None, "duplicate": other, "stands": a.state in FINAL}
    if not possible[answer]:
        return False
    if answer == "happened":
        op.confirm(a, name=name)
    else:
        op.close_conflict(a)
    return True
