"""The words of pages for the ledger's codes. Codes stay beside them: those are searched and filtered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ledger.rules.vocabulary import DecisionKind, Effect, Escalation, ReviewReason

_R = ReviewReason

REASON_WORDS: Mapping[ReviewReason, str] = {
    _R.UNKNOWN: "Contact was lost",
    _R.NO_LOOKUP: "This tool has no look-up",
    _R.ADAPTER_FAILING: "The look-up itself keeps failing",
    _R.UNRESOLVED: "Looked up often enough without an answer",
    _R.SEVERAL_MATCHES: "Two or more records match",
    _R.HASH_MISMATCH: "A record exists with other content",
    _R.REVERSED: "It happened and was undone",
    _R.CONFLICTING_EVIDENCE: "The evidence contradicts itself",
    _R.NOT_IDEMPOTENT: "Not found, and the provider keeps no keys",
    _R.KEY_WINDOW_OVER: "Not found, and the provider has forgotten the key",
    _R.AUTHORITY_REFUSED: "Not found, and sending is no longer permitted",
    _R.ATTEMPTS_USED_UP: "Not found, and every attempt is used up",
    _R.APPROVAL_REQUIRED: "A person must approve each send",
    _R.APPROVAL_EXPIRED: "The approval expired unused",
    _R.ARGUMENTS_CHANGED: "Same key, other arguments",
    _R.POLICY_CHANGED: "The policy now asks for a review",
    _R.SUSPECTED_DUPLICATE: "Looks like a duplicate of other work",
    _R.SENT_WITHOUT_LEAVE: "Reported as sent without leave",
}

NOT_KNOWN: Mapping[ReviewReason, str] = {
    _R.UNKNOWN: "Not known: whether the provider carried it out. Contact was lost after leave.",
    _R.NO_LOOKUP: "Not known: whether the provider carried it out. The tool has no look-up.",
    _R.ADAPTER_FAILING: "Not known: whether the provider carried it out. The look-up itself keeps failing.",
    _R.UNRESOLVED: "Not known: whether the provider carried it out. Its answers so far decide nothing.",
    _R.SEVERAL_MATCHES: "Not known: which of several records it is, and whether it was done twice.",
    _R.HASH_MISMATCH: "Not known: whether the record found is this one. Its content differs.",
    _R.REVERSED: "To decide: whether it stands. It was carried out and then undone.",
    _R.CONFLICTING_EVIDENCE: "Not known: which of the contradicting facts is true. Possibly done twice.",
    _R.NOT_IDEMPOTENT: "To decide: whether to send again. It was not found; the provider keeps no keys.",
    _R.KEY_WINDOW_OVER: "To decide: whether to send again. It was not found; the provider forgot the key.",
    _R.AUTHORITY_REFUSED: "To decide: whether to send again. It was not found; authority was refused.",
    _R.ATTEMPTS_USED_UP: "To decide: whether to send again. It was not found; all attempts are used.",
    _R.APPROVAL_REQUIRED: "To decide: whether to send it. A person must say so before each send.",
    _R.APPROVAL_EXPIRED: "To decide: whether still to send it. It was approved, and nobody sent it in time.",
    _R.ARGUMENTS_CHANGED: "Not known: which arguments are meant. The same key was posted with others.",
    _R.POLICY_CHANGED: "To decide: whether still to send it. The policy changed before it was sent.",
    _R.SUSPECTED_DUPLICATE: "Not known: whether this repeats another operation with equal arguments.",
    _R.SENT_WITHOUT_LEAVE: "Not known: what was sent. The agent reports a send it had no leave for.",
}

ESCALATION_WORDS: Mapping[Escalation, str] = {
    Escalation.KEY_WINDOW_CLOSING: "the provider is about to forget the key",
    Escalation.OVERDUE: "overdue, and the provider leaves it undecided",
}

EFFECT_WORDS: Mapping[Effect, str] = {
    Effect.READ: "Reads only",
    Effect.MESSAGE: "Sends a message",
    Effect.PAYMENT: "Moves money",
    Effect.DELETION: "Deletes",
    Effect.DEPLOYMENT: "Deploys",
    Effect.WRITE: "Changes data",
}

DECISION_LABELS: Mapping[DecisionKind, str] = {
    DecisionKind.APPROVE: "Approve and dispatch",
    DecisionKind.REJECT: "Reject",
    DecisionKind.CONFIRM_HAPPENED: "Confirm it happened",
    DecisionKind.CONFIRM_DID_NOT: "Confirm it did not happen",
    DecisionKind.RELINK_ARGUMENTS: "Relink to corrected arguments",
    DecisionKind.RELINK_RECORD: "Relink to a provider record",
    DecisionKind.RELINK_OPERATION: "Relink to another operation",
    DecisionKind.INTENDED_REPEAT: "It is meant to repeat",
    DecisionKind.RECHECK: "Re-check",
    DecisionKind.CONFLICT_HAPPENED: "Conflict: it happened",
    DecisionKind.CONFLICT_DUPLICATE: "Conflict: it is a duplicate",
    DecisionKind.CONFLICT_STANDS: "Conflict: the state stands",
    DecisionKind.ASSIGN: "Assign",
    DecisionKind.CLAIM: "Claim",
    DecisionKind.RELEASE: "Release",
    DecisionKind.TAKE_OVER: "Take over",
    DecisionKind.HAND_OVER: "Hand over",
    DecisionKind.SNOOZE: "Snooze",
    DecisionKind.WAKE: "Wake",
    DecisionKind.WAIT_ON: "Waiting on",
    DecisionKind.NOTE: "Note",
}

ANSWER_WORDS: Mapping[str, str] = {
    "found": "Found",
    "absent": "Not found",
    "unavailable": "The provider did not answer",
    "adapter_failed": "The look-up itself failed",
    "no_lookup": "There is no look-up",
}


def listed(names: Sequence[str]) -> str:
    """`ada`, `ada and bruno`, `ada, bruno and chen`."""
    *others, last = names or ("nobody",)
    return f"{', '.join(others)} and {last}" if others else last


def plain(code: str) -> str:
    """A code without words of its own, readable."""
    return code.replace("_", " ").replace("-", " ")
