"""The boundaries of the product's safety rules, each with the points at which the suite strikes for it.

A test holds that every boundary has points and that every point exists.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.crash.suite.points import POINTS


def _all(*beginnings: str) -> tuple[str, ...]:
    return tuple(point for point in POINTS if point.startswith(beginnings))


BOUNDARIES: Mapping[str, tuple[str, ...]] = {
    "agent killed before the intent is answered; server killed before, inside each statement of, and after "
    "the transaction; answer lost": _all("intent."),
    "after intent commit, before leave (A)": ("agent.recorded", *_all("leave.")),
    "after leave commit, before sending": (
        "agent.leave",
        "leave.after_commit",
        "leave.answer",
        "sender.leave_committed",
        "sender.before_send",
        *_all("sender.leave.", "sender.leave_again."),
    ),
    "after sending, before any answer (B)": ("agent.sent",),
    "after the provider answered, before the request id, before the outcome is stored (C)": (
        "agent.answered",
        "agent.named",
        "sender.sent",
        *_all("request_id.", "outcome.", "sender.outcome."),
    ),
    "between outcome commit and hint to the sender": (
        "outcome.after_commit",
        "sender.outcome.after_commit",
        "reconciler.apply.after_commit",
        "decision.other.after_commit",
    ),
    "after delivery sent, before the mark": ("delivery.sent", *_all("delivery.record.")),
    "delivery claimed, and not sent; held, released, redelivered; acknowledged, and the acknowledgement not "
    "stored": (
        "delivery.claimed",
        *_all("delivery.claim.", "delivery.pauses.", "delivery.person."),
        *_all("destination.", "ack."),
    ),
    "reconciler killed after claim, during look-up, before commit, after opening the next attempt; two at "
    "once; paused beyond its lease and resumed (zombie)": _all("reconciler.", "sweep."),
    "approve killed before, inside, after commit; against cancel and publish": _all("decision.", "cancel."),
    "killed after the approval's use, before sending": ("leave.after_commit", "agent.leave"),
    "PostgreSQL stopped at once, backend killed, connection cut mid-commit": _all(
        "intent.", "leave.", "outcome.", "reconciler.", "sender.", "decision."
    ),
}
"""For ingest, leave, deliveries, recovery and approval, in the order of the rules; the third row of
deliveries is more than they name."""

ELSEWHERE: Mapping[str, str] = {
    "double click; two people; approve against reject and expiry": "without kills, in "
    "tests/review/test_pairs.py: the suite has one desk",
    "duplicate, lost, late worker message; broker wiped (D)": "messages of a plan: twice, late, lost; wipe. "
    "They are the lane's own: a real broker is killed in tests/incidents/test_r117*",
    "authorisation revoked, key narrowed, policy published, tenant suspended, operation cancelled while "
    "UNKNOWN (E)": "happenings of a plan",
    "look-up times out, 429, 5xx, truncated, wrong tenant, several, late appearance, 404 instead of 403 "
    "(F)": "modes of the provider (provider_modes.py)",
    "budget reserved, then killed; resumed": "runs of a plan: run_calls",
    "disk full, clock jumped": "nowhere",
    "restored from an older backup, or a copy started beside the live one": "not built yet",
}
"""Boundaries that are no place in the code, or that the suite does not reach, and what stands for them."""
