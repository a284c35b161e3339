"""The words of pages for the ledger's codes. Codes stay beside them: those are searched and filtered."""

from __future__ import annotations

from collections.abc import Mapping

from ledger.rules.authority import Reason
from ledger.rules.vocabulary import DecisionKind, Effect, ReviewReason

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
    _R.APPROVAL_REQUIRED: "A person must approve the first send",
    _R.APPROVAL_EXPIRED: "The approval expired unused",
    _R.ARGUMENTS_CHANGED: "Same key, other arguments",
    _R.POLICY_CHANGED: "The policy now asks for a review",
    _R.SUSPECTED_DUPLICATE: "Looks like a duplicate of other work",
    _R.SENT_WITHOUT_LEAVE: "Reported as sent without leave",
}

NOT_KNOWN: Mapping[ReviewReason, str] = {
    _R.UNKNOWN: "Whether the provider carried it out: contact was lost after leave to send was given.",
    _R.NO_LOOKUP: "Whether the provider carried it out, and nobody can ask: the tool has no look-up.",
    _R.ADAPTER_FAILING: "Whether the provider carried it out: the look-up itself keeps failing.",
    _R.UNRESOLVED: "Whether the provider carried it out: its answers so far decide nothing.",
    _R.SEVERAL_MATCHES: "Which of several records is this one, and whether it was done more than once.",
    _R.HASH_MISMATCH: "Whether the record that was found is this one: its content differs.",
    _R.REVERSED: "Whether it should stand: it was carried out and then undone.",
    _R.CONFLICTING_EVIDENCE: "Which of the contradicting facts is true; it is possibly done twice.",
    _R.NOT_IDEMPOTENT: "Whether a new send is safe: it was not found, and the provider keeps no keys.",
    _R.KEY_WINDOW_OVER: "Whether a new send is safe: it was not found, and the provider forgot the key.",
    _R.AUTHORITY_REFUSED: "Whether it may still be sent: it was not found, and authority was refused.",
    _R.ATTEMPTS_USED_UP: "Whether to try once more: it was not found and all attempts are used.",
    _R.APPROVAL_REQUIRED: "Whether it should be sent at all: the policy wants a person to say so first.",
    _R.APPROVAL_EXPIRED: "Whether it should still be sent: it was approved and nobody sent it in time.",
    _R.ARGUMENTS_CHANGED: "Which arguments are meant: the same key was posted with different ones.",
    _R.POLICY_CHANGED: "Whether it should still be sent: the policy changed before it was.",
    _R.SUSPECTED_DUPLICATE: "Whether this is the same work as another operation with equal arguments.",
    _R.SENT_WITHOUT_LEAVE: "What was sent: the agent reports a send it had no leave for.",
}

EFFECT_WORDS: Mapping[Effect, str] = {
    Effect.READ: "Reads only",
    Effect.MESSAGE: "Sends a message",
    Effect.PAYMENT: "Moves money",
    Effect.DELETION: "Deletes",
    Effect.DEPLOYMENT: "Deploys",
    Effect.WRITE: "Changes data",
}

AUTHORITY_WORDS: Mapping[Reason, str] = {
    Reason.TENANT_SUSPENDED: "The tenant is suspended.",
    Reason.AGENT_INACTIVE: "The agent is switched off.",
    Reason.OWNER_INACTIVE: "The agent's owner is no longer active.",
    Reason.KEY_REVOKED: "The agent has no key that is not revoked.",
    Reason.KEY_EXPIRED: "The agent's key has expired.",
    Reason.SCOPE_REFUSED: "The agent's key does not cover this tool.",
    Reason.TARGET_REFUSED: "The agent's key does not cover this target.",
    Reason.OPERATION_CANCELLED: "The operation was cancelled.",
    Reason.EXPIRED: "The intent has expired.",
    Reason.POLICY_REFUSED: "The policy no longer allows this tool.",
    Reason.POLICY_CHANGED: "The rule changed since.",
    Reason.KEY_WINDOW_OVER: "The provider no longer honours the key.",
    Reason.ATTEMPTS_USED_UP: "All attempts are used.",
    Reason.BUDGET_EXHAUSTED: "The run's budget is used up.",
    Reason.APPROVAL_USED: "The approval was used.",
    Reason.APPROVAL_EXPIRED: "The approval expired.",
    Reason.APPROVAL_STALE: "The approval is for something else than would be sent now.",
    Reason.APPROVER_REFUSED: "Somebody who approved may no longer approve.",
}

DECISION_LABELS: Mapping[DecisionKind, str] = {
    DecisionKind.APPROVE: "Approve and dispatch",
    DecisionKind.REJECT: "Reject",
    DecisionKind.CONFIRM_HAPPENED: "Confirm it happened",
    DecisionKind.CONFIRM_DID_NOT: "Confirm it did not happen",
    DecisionKind.RELINK_ARGUMENTS: "Relink to corrected arguments",
    DecisionKind.RELINK_RECORD: "Relink to a provider record",
    DecisionKind.RELINK_OPERATION: "Relink to another operation",
    DecisionKind.RECHECK: "Re-check",
    DecisionKind.CONFLICT_HAPPENED: "Conflict: it happened",
    DecisionKind.CONFLICT_DUPLICATE: "Conflict: it is a duplicate",
    DecisionKind.CONFLICT_STANDS: "Conflict: the state stands",
    DecisionKind.ASSIGN: "Assign",
    DecisionKind.CLAIM: "Claim",
    DecisionKind.RELEASE: "Release",
    DecisionKind.TAKE_OVER: "Take over",
    DecisionKind.NOTE: "Note",
}

ANSWER_WORDS: Mapping[str, str] = {
    "found": "Found",
    "absent": "Not found",
    "unavailable": "The provider did not answer",
    "adapter_failed": "The look-up itself failed",
    "no_lookup": "There is no look-up",
}


def plain(code: str) -> str:
    """A code without words of its own, readable."""
    return code.replace("_", " ").replace("-", " ")
