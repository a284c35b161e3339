"""Every error the API can answer with: one table, shown by the pages `/problems/<slug>` too.

An error never means "go ahead": `safe_to_dispatch` is false on each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ledger.rules.authority import AUTHORITY_WORDS, Reason


@dataclass(frozen=True)
class ProblemKind:
    """One row of the table. `retryable`: the same call, unchanged, may be answered otherwise later."""

    slug: str
    title: str
    status: int
    explanation: str
    mend: str
    retryable: bool = False

    @property
    def type(self) -> str:
        return f"/problems/{self.slug}"


_REQUEST = (
    ProblemKind(
        "bad-request", "The request cannot be read", 400,
        "The address, a query parameter or a header holds something no call of this API takes: control "
        "characters, the same parameter twice, or a host this ledger does not answer for.",
        "Send each parameter once, percent-encoded, to the address the ledger was given to you under.",
    ),
    ProblemKind(
        "malformed-json", "The body is not JSON the ledger can store", 400,
        "The body must be one JSON object in UTF-8, nested at most 32 deep, without repeated names, NUL, "
        "lone surrogates, or numbers that a double would change. Its length must be what Content-Length "
        "says.",
        "Correct the place named in the detail. Send large or precise numbers as text.",
    ),
    ProblemKind(
        "unauthorized", "No valid API key", 401,
        "The request carries no API key this ledger knows. The answer is the same for every kind of wrong "
        "key.",
        "Send `Authorization: Bearer ilk_…` with a key that was made for your agent.",
    ),
    ProblemKind(
        "not-found", "Not found", 404,
        "There is nothing under this address or id that belongs to your tenant.",
        "Use the id the ledger answered with; post the same intent again to learn it.",
    ),
    ProblemKind(
        "method-not-allowed", "This address does not take that method", 405,
        "The address exists, but not with this HTTP method.",
        "Use one of the methods listed in the Allow header.",
    ),
    ProblemKind(
        "length-required", "The length of the body is missing", 411,
        "A body must come with its Content-Length; chunked bodies are not read.",
        "Send the whole body at once with a Content-Length header.",
    ),
    ProblemKind(
        "body-too-large", "The body is too large", 413,
        "A body may have at most 262,144 bytes.",
        "Store large content elsewhere and send a reference and its hash.",
    ),
    ProblemKind(
        "address-too-long", "The address is too long", 414,
        "The path and query together may have at most 8,192 bytes.",
        "Send fewer or shorter parameters.",
    ),
    ProblemKind(
        "unsupported-media-type", "The body is not plain application/json", 415,
        "Bodies are read as application/json in UTF-8, neither compressed nor encoded in another way.",
        "Send `Content-Type: application/json` and no Content-Encoding.",
    ),
    ProblemKind(
        "invalid-request", "A field is missing, unknown or not allowed", 422,
        "The body or query was read, but a field does not fit the call. The detail names it.",
        "Correct the field; /api/v1/openapi.json describes every call.",
    ),
    ProblemKind(
        "parking-full", "No more facts about unknown attempts are kept", 429,
        "The tenant has as many parked facts as it may have, so this one, about an attempt it does not know, "
        "was not kept.",
        "Keep the report and repeat the same call after the time in Retry-After. People make room at the "
        "review desk.",
        retryable=True,
    ),
    ProblemKind(
        "internal-error", "The ledger failed", 500,
        "Something went wrong inside the ledger. Whether the call took effect is unknown; nothing may be "
        "sent.",
        "Repeat the same call: repeating is always safe. Give the request id to the people who run the "
        "ledger.",
        retryable=True,
    ),
    ProblemKind(
        "unavailable", "The ledger cannot answer now", 503,
        "The database did not answer in time, or too many calls wanted the same operation.",
        "Repeat the same call after the time in Retry-After. Send nothing until it is answered.",
        retryable=True,
    ),
    ProblemKind(
        "fenced", "The ledger is fenced", 503,
        "The ledger was restored or copied, so it may have forgotten what was sent since. Reads and "
        "reports are accepted; leave to send is not given.",
        "Wait until two people of the ledger have lifted the fence.",
        retryable=True,
    ),
)  # fmt: skip

_CONTENT = (
    ProblemKind(
        "idempotency-key-reused", "This operation key was used with other content", 422,
        "An operation with this key exists with another tool or other arguments. Nothing was replaced: "
        "the new content is held as an attempt of its own until a person decides.",
        "Post the original content again, use a new operation key, or wait for the decision on the held "
        "attempt.",
    ),
    ProblemKind(
        "args-hash-mismatch", "The hash is not that of the arguments", 422,
        "args_hash differs from the hash of the canonical bytes of args.",
        "Hash the RFC 8785 bytes of args as v1:sha256:<hex>, or leave args_hash out.",
    ),
    ProblemKind(
        "args-required", "Arguments or their hash are required", 422,
        "An intent names what is to be sent: args, or at least args_hash; args where the ledger itself is to "
        "send it, or reads in them what it costs the run.",
        "Send args. With only args_hash, no person can approve or correct a new send.",
    ),
    ProblemKind(
        "cost-unreadable", "The cost cannot be read from the arguments", 422,
        "The policy reserves an amount of the run's budget for this tool. The arguments do not hold it, or "
        "not in plain digits (a number, or text such as 10.50: no sign, no exponent, no separators, at most "
        "15 digits before the point and 8 after it) with a unit such as EUR. Nothing was stored.",
        "Correct the argument named in the detail, and post the intent again.",
    ),
    ProblemKind(
        "unknown-person", "requested_by names nobody", 422,
        "requested_by must be the user name or e-mail address of an active person who works with your "
        "tenant.",
        "Send the person's user name, or leave requested_by out.",
    ),
    ProblemKind(
        "invalid-cursor", "The cursor is not of this list", 422,
        "A cursor is only good for the list, filters and tenant it was given for.",
        "Start again without a cursor.",
    ),
    ProblemKind(
        "usage-id-reused", "This usage id was used with other amounts", 409,
        "The run has already counted other amounts under this usage_id. Nothing was counted again.",
        "Use one usage_id per piece of usage.",
    ),
    ProblemKind(
        "run-limits-fixed", "The limits of a run never change", 409,
        "The run exists with other limits. Limits are set when a run is created and survive every resume.",
        "Open the run with the limits it was created with, or use a new run.",
    ),
    ProblemKind(
        "checkpoint-not-growing", "The sequence of a run checkpoint must grow", 409,
        "The run already has a checkpoint with this sequence or a later one.",
        "Read the run, and go on from its newest checkpoint.",
    ),
)  # fmt: skip

_LEAVE = (
    ProblemKind(
        "in-flight", "It is being sent or found out", 409,
        "The operation may be on its way, waits for its back-off, or must be looked up before leave can "
        "be given.",
        "Send nothing. Post the same intent again after the time in Retry-After and obey the directive.",
        retryable=True,
    ),
    ProblemKind(
        "on-hold", "A person must decide first", 409,
        "The attempt, or another one of its operation, waits for a person.",
        "Send nothing. Post the same intent again later; review_url is where a person decides.",
        retryable=True,
    ),
    ProblemKind(
        "already-done", "It has already happened", 409,
        "An attempt of this operation is confirmed.",
        "Send nothing. Use result_ref.",
    ),
    ProblemKind(
        "args-changed", "The stored arguments are others", 409,
        "What would be sent differs from what is stored: a person may have corrected it. The stored "
        "arguments are in the body.",
        "Ask for leave with the hash of the stored arguments, and send exactly those.",
    ),
    ProblemKind(
        "ledger-executes", "The ledger sends this itself", 409,
        "The policy says that the ledger, not the agent, executes this tool.",
        "Send nothing. Post the same intent again later for the result.",
    ),
    ProblemKind(
        "illegal-transition", "The attempt is past this", 409,
        "The attempt is in a state from which no leave can be given.",
        "Send nothing. Post the same intent again and obey the directive.",
    ),
    ProblemKind(
        "stale-lease", "The send lease is over or not yours", 409,
        "The lease ran out, reached its longest extent, or belongs to another worker.",
        "Send nothing more. Report what is known about the outcome; post the same intent again.",
    ),
)  # fmt: skip


def _refusal(reason: Reason, explanation: str, mend: str) -> ProblemKind:
    return ProblemKind(reason.value, AUTHORITY_WORDS[reason].rstrip("."), 403, explanation, mend)


_AUTHORITY = (
    _refusal(
        Reason.TENANT_SUSPENDED,
        "While a tenant is suspended nothing new is recorded or sent. Reports are still accepted.",
        "Ask the people who run the ledger.",
    ),
    _refusal(
        Reason.AGENT_INACTIVE,
        "The agent was switched off.",
        "Ask an admin of the tenant.",
    ),
    _refusal(
        Reason.OWNER_INACTIVE,
        "An agent acts for its owner, and that person's account is closed.",
        "Ask an admin of the tenant for an agent with an active owner.",
    ),
    _refusal(
        Reason.KEY_REVOKED,
        "A revoked key gives no authority. For seven days its reports are still kept as evidence.",
        "Use a live key of the same agent.",
    ),
    _refusal(
        Reason.KEY_EXPIRED,
        "An expired key gives no authority; it may still report on what it dispatched.",
        "Use a live key of the same agent.",
    ),
    _refusal(
        Reason.SCOPE_REFUSED,
        "The key has no scope for the tool, or not the verb this call needs.",
        "Ask for a key with the scope or verb named in the detail.",
    ),
    _refusal(
        Reason.TARGET_REFUSED,
        "The policy names a target in the arguments, and no `target:` scope of the key covers it.",
        "Ask for a key with a scope for the target.",
    ),
    _refusal(
        Reason.OPERATION_CANCELLED,
        "A cancelled operation is never sent again.",
        "Use a new operation key with retry_of if it is wanted after all.",
    ),
    _refusal(
        Reason.EXPIRED,
        "The time in expires_at has passed.",
        "Use a new operation key with retry_of if it is still wanted.",
    ),
    _refusal(
        Reason.POLICY_REFUSED,
        "The tenant's policy in force has no rule that permits the tool.",
        "Ask an admin of the tenant to publish a policy with a rule for it.",
    ),
    _refusal(
        Reason.POLICY_CHANGED,
        "The attempt was made under another rule; a new send needs a person's approval under the present "
        "one.",
        "Send nothing. A person decides at review_url.",
    ),
    _refusal(
        Reason.KEY_WINDOW_OVER,
        "The time in which the provider recognises a repeated key is over, so a resend could happen twice.",
        "Send nothing. A person decides at review_url.",
    ),
    _refusal(
        Reason.ATTEMPTS_USED_UP,
        "The operation was sent as often as its rule allows.",
        "Send nothing. A person decides at review_url.",
    ),
    _refusal(
        Reason.BUDGET_EXHAUSTED,
        "The limits of the run leave no room for this send, and no resume raises them.",
        "Stop this run, or ask for a new one with larger limits.",
    ),
    _refusal(
        Reason.APPROVAL_USED,
        "An approval leads to one send.",
        "Send nothing. A person must approve anew.",
    ),
    _refusal(
        Reason.APPROVAL_EXPIRED,
        "The approval was not used in its time.",
        "Send nothing. A person must approve anew.",
    ),
    _refusal(
        Reason.APPROVAL_STALE,
        "What was approved differs from what would be sent now: content, rule or scopes have changed.",
        "Send nothing. A person must approve anew.",
    ),
    _refusal(
        Reason.APPROVER_REFUSED,
        "Somebody who approved has since lost the right to, or is in conflict.",
        "Send nothing. Another person must approve.",
    ),
)  # fmt: skip

PROBLEMS: Mapping[str, ProblemKind] = {
    kind.slug: kind for kind in (*_REQUEST, *_CONTENT, *_LEAVE, *_AUTHORITY)
}
"""Every kind of problem by its slug."""
