"""R28: Completed, in progress, queued: arrival in reverse order.

Kind: order of arrival is never trusted, and no attempt is made up from a report.

The scenario ends OUTCOME_CONFIRMED. domain.md wins: what was sent before its intent had no leave, so it is
`sent_without_leave` and a person confirms it (here with the reference that was reported). The history shows
the real order, and the broken guarantee is counted.
"""

from __future__ import annotations

from ledger.models import Event, Operation
from ledger.queries.parked import recorded_after_send
from ledger.rules.canonical import canonical_bytes, content_hash
from review import decisions
from tests.incidents.aftermath import nothing_else_went_wrong
from tests.incidents.scene import ARGS, MAIL, Scene
from tests.support import make
from tests.support.api import slug_of

LOST = "att_" + "7" * 26


def test_the_queue_flushed_backwards(scene: Scene) -> None:
    confirmed = {"worker_id": "w1", "outcome": "succeeded", "provider_request_id": "p-1"}
    dispatched = {"worker_id": "w1", "provider_request_id": "p-1"}
    post = scene.api.post
    assert post(f"/attempts/{LOST}/outcome", operation_key="k1", **confirmed).status_code == 202
    assert post(f"/attempts/{LOST}/provider-request", operation_key="k1", **dispatched).status_code == 202
    args_hash = content_hash(canonical_bytes(ARGS[MAIL]))
    assert slug_of(post(f"/attempts/{LOST}/dispatch", worker_id="w1", args_hash=args_hash)) == "not-found"
    assert not Operation.objects.filter(tenant=scene.people.tenant).exists()

    intent = scene.recorded(tool=MAIL)
    attempt = scene.attempt(intent)
    assert (attempt.state, attempt.reason) == ("MANUAL_REVIEW", "sent_without_leave")
    assert attempt.provider_request_id == "p-1"
    history = Event.objects.filter(tenant=scene.people.tenant).order_by("sequence")
    assert list(history.values_list("kind", flat=True)) == [
        "attempt.intent", "attempt.outcome_reported", "attempt.manual_review", "attempt.provider_request",
    ]  # fmt: skip
    assert recorded_after_send() == 1
    assert slug_of(scene.dispatch(intent)) == "on-hold"

    item = make.item_of(attempt)
    decisions.confirm_happened(scene.people.operator, item.pk, why="the provider has it", reference="p-1")
    attempt = scene.attempt(intent)
    assert (attempt.state, attempt.confirmed_by) == ("OUTCOME_CONFIRMED", "operator")
    nothing_else_went_wrong(scene)
