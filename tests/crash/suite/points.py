"""Every point at which the suite may strike, by name, and the ways it may strike there.

A transaction is named after the place that opens it, so that no product code has to name it: `TRANSACTIONS`
lists every caller of `durable` that runs in the suite, and a test holds the list against the code.
"""

from __future__ import annotations

from collections.abc import Mapping

from ledger.faults import POINTS as IN_PRODUCT

NOT_STRUCK = frozenset(
    {
        "ledger.reconciliation.apart.is_locked",
        "ledger.reconciliation.sweep._join",
        "ledger.deliveries.claiming.renew",
        "ledger.deliveries.holding._ended",
        "ledger.deliveries.redelivering._run",
        "ledger.deliveries.testing.send_test",
        "review.absences._say",
        "review.access._as_administrator_of_all",
        "review.access.as_administrator",
        "review.accounts.change_password",
        "review.accounts.set_password",
        "review.deliveries.cancel_plan",
        "review.deliveries.plan_redelivery",
        "review.destinations.add",
        "review.ownership_rules._apply",
        "review.ownership_rules.save_rules",
        "review.parked._as_decider",
        "review.presses.new_press",
        "review.presses.use_press",
        "review.teams._once_named",
        "review.teams.add_member",
        "review.teams.remove_member",
    }
)
"""Transactions that no schedule leads to yet: late joining of parked facts, and notes on them; leases renewed
while a try goes on, the end of what was never acknowledged, plans of redelivery, test events; what is asked
of a person before a dangerous yes; who is away, passwords; and what administrators set up. Joining, and
what people press of these, is killed at each of its steps by `test_decisions_killed.py`, but for test events
and new forms."""
CALL_VERB = "ledger.ingest.calls.call_verb"
VERBS: Mapping[str, str] = {
    "record_intent": "intent",
    "_leave_and_standing": "leave",
    "extend_lease": "heartbeat",
    "take_provider_request": "request_id",
    "take_outcome": "outcome",
    "cancel_operation": "cancel",
    "declare_worker_dead": "recover",
    "record_ack": "ack",
}
"""The verbs behind the API, each in a transaction of `call_verb`."""

TRANSACTIONS: Mapping[str, str] = {
    "ledger.reconciliation.claims.claim_in": "reconciler.claim",
    "ledger.reconciliation.runner._Pass._apply_one": "reconciler.apply",
    "ledger.reconciliation.runner._Pass._apply_plain": "reconciler.apply",
    "ledger.reconciliation.health.note_answer": "reconciler.health",
    "ledger.reconciliation.health._make_all_due": "reconciler.health",
    "ledger.reconciliation.apart.unless_locked": "sweep",
    "ledger.reconciliation.due_sends.put_off": "sender.put_off",
    "ledger.reconciliation.resend._try": "sender.cannot",
    "ledger.reconciliation.resend._ask_and_send": "sender.leave",
    "ledger.reconciliation.resend._send": "sender.leave_again",
    "ledger.reconciliation.resend._record": "sender.outcome",
    "ledger.deliveries.claiming.claim_due": "delivery.claim",
    "ledger.deliveries.sender.Sender._record": "delivery.record",
    "ledger.deliveries.holding.follow_pauses": "delivery.pauses",
    "review.deliveries._as_decider": "delivery.person",
    "review.destinations._as_administrator": "destination.change",
    "review.decisions.approve": "decision.approve",
    "review.decisions.relink_arguments": "decision.arguments",
    "review.decisions.as_decider": "decision.other",
    "review.ownership.assign": "decision.assign",
    "review.ownership.note": "decision.note",
}
"""Who opens a transaction by `durable`, and what that transaction is called here."""

AGENT = (
    "agent.recorded",  # after the intent
    "agent.leave",  # A: after leave, before sending
    "agent.sent",  # B: after sending, before any answer is read
    "agent.answered",  # C: after the provider's answer, before its request id is stored
    "agent.named",  # after the request id, before the outcome
    "agent.reported",  # after the outcome
)
STEPS = ("statement", "before_commit", "after_commit")
NAMES = tuple(dict.fromkeys((*VERBS.values(), *TRANSACTIONS.values())))
IN_TRANSACTIONS = tuple(f"{name}.{step}" for name in NAMES for step in STEPS)
ANSWERS = tuple(f"{name}.answer" for name in VERBS.values())
BETWEEN = tuple(sorted(point for point in IN_PRODUCT if not point.endswith(".before_commit")))
POINTS = (*AGENT, *IN_TRANSACTIONS, *ANSWERS, *BETWEEN)

DYING = ("kill", "stop")
BROKEN = ("cut", "backend", "postgres")
KINDS = ("kill", "stop", "error", *BROKEN, "lost")


def kinds_at(point: str) -> tuple[str, ...]:
    """What may happen at a point: `kill` SIGKILL, `stop` SIGSTOP and later SIGCONT, `error` an exception,
    `cut` the connection to the database, `backend` terminated, `postgres` stopped at once, `lost` answer."""
    if point in ANSWERS:
        return ("kill", "lost")
    if point in AGENT or point in BETWEEN:
        return DYING
    if point.endswith(".after_commit"):
        return ("kill", "stop", *BROKEN)
    return ("kill", "stop", "error", *BROKEN)


def name_of(caller: str) -> str | None:
    """What the transaction opened by this caller is called; None: it is none of the product's."""
    return TRANSACTIONS.get(caller)
