"""The demo's log: one short line for each thing that changed, in words for people."""

from __future__ import annotations

from dashboard.management.demo.jobs import Boundary, Job, Reply, Said

PROVIDERS = {
    "refunds": "the bank",
    "messages": "the mail service",
    "tickets": "the help desk",
    "deployments": "the release service",
}

KILLED = {
    Boundary.BEFORE_LEAVE: "killed before it had leave; nothing can have been sent",
    Boundary.BEFORE_SENDING: "killed with leave, before anything was sent",
    Boundary.BEFORE_ANSWER: "killed after {provider} stored it, before the answer",
    Boundary.BEFORE_REPORT: "killed after the answer, before it was reported",
}


def killed(job: Job, boundary: Boundary) -> str:
    return f"{job.name}: {KILLED[boundary].format(provider=PROVIDERS[job.resource])}"


def news(job: Job, reply: Reply, *, before: str) -> str:
    """What is new about a job; empty where nothing is. `before`: the state as last heard."""
    if reply.said is Said.DONE:
        return f"{job.name}: {_done(reply, before)}"
    if (reply.state or reply.said.value) == before:
        return ""
    return f"{job.name}: {_open(reply)}"


def _done(reply: Reply, before: str) -> str:
    if not reply.sent:
        how = "a person said so" if before == "MANUAL_REVIEW" else "found there by a look-up"
        return f"confirmed: {how} ({reply.result_ref}); not sent again"
    again = {"MANUAL_REVIEW": "approved; sent once", "FAILED_RETRYABLE": "sent again with the same key"}
    return f"{again.get(before, 'sent')}, confirmed ({reply.result_ref})"


def _open(reply: Reply) -> str:
    if reply.said is Said.CLOSED:
        return f"closed as {reply.state}; the agent lets it be"
    if reply.said in {Said.REFUSED, Said.UNAVAILABLE}:
        return f"not sent: {reply.reason or 'no answer'}"
    sentences = {
        "DISPATCHED": "DISPATCHED; its lease still runs, so the agent waits",
        "UNKNOWN": "UNKNOWN; the ledger asks the provider",
        "FAILED_RETRYABLE": "proven not to have happened; the agent may send it again",
        "MANUAL_REVIEW": f"MANUAL_REVIEW ({reply.reason}); a person decides",
    }
    return sentences.get(reply.state, reply.reason or reply.state or reply.said.value)
