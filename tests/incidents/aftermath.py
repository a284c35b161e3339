"""What must hold after every scenario, beside its own outcome."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q

from ledger.fsck import run_fsck
from ledger.models import Attempt, Event, FsckForm, Operation, ReviewItem
from ledger.queries.history import chains_of
from ledger.rules.states import OPEN_QUESTION, State
from ledger.rules.vocabulary import EventKind
from ledger.transactions import database_clock
from tests.incidents.scene import Scene, rows
from tests.support.api import slug_of


def nothing_else_went_wrong(scene: Scene, *, strangers_acted: bool = False) -> None:
    """Effects at most one per operation unless a person approved another; history only grew and explains each
    move; nothing crossed a tenant; no new send had wider scopes; recovery run again changes nothing; every
    open question is on the desk with an owner; only who had leave called the tool; `fsck` finds nothing."""
    history_only_grew(scene)
    _recovery_again_changes_nothing(scene)
    history_only_grew(scene)
    _effects_are_approved(scene)
    _nothing_crossed(scene, strangers_acted=strangers_acted)
    _no_wider_scopes(scene)
    _open_questions_are_owned(scene)
    _only_who_had_leave_called(scene)
    assert run_fsck(FsckForm.WHOLE).findings == ()


def history_only_grew(scene: Scene) -> None:
    """Call it in between, too: what was read before is still there, unchanged, and more may have come."""
    for chain in chains_of():
        assert chain.find_break() is None, chain.find_break()
        hashes = [event.hash for event in chain.events]
        before = scene.histories.get(chain.operation_id, [])
        assert hashes[: len(before)] == before, "what was written changed"
        scene.histories[chain.operation_id] = hashes
    for event in Event.objects.all():
        assert event.actor, f"{event.kind} has no actor"
        assert event.actor_kind, f"{event.kind} has no kind of actor"
    read_by_all = Operation.objects.values_list("pk", flat=True)
    assert set(scene.histories) <= set(read_by_all), "a history is gone"


def _recovery_again_changes_nothing(scene: Scene) -> None:
    """First to the end of what is due now. What is not due yet is left to its time."""
    for _ in range(50):
        if not scene.recover():
            break
    later = database_clock() + timedelta(hours=1)
    Attempt.objects.filter(next_check_at__isnull=False).update(next_check_at=later)
    Attempt.objects.filter(Q(state=State.FAILED_RETRYABLE) | Q(send_again_at__isnull=False)).update(
        send_again_at=later
    )
    before = rows(scene)
    assert scene.recover() == 0
    assert scene.recover() == 0
    assert rows(scene) == before


def _effects_are_approved(scene: Scene) -> None:
    for operation in Operation.objects.filter(tenant=scene.people.tenant):
        leaves = operation.attempts.filter(dispatched_at__isnull=False)
        approved = leaves.filter(approval_use__isnull=False).count()
        allowed = approved + (1 if leaves.count() > approved else 0)
        effects = scene.effects(operation.operation_key)
        assert effects <= max(1, allowed), f"{operation.operation_key}: {effects} effects"


def _nothing_crossed(scene: Scene, *, strangers_acted: bool) -> None:
    if not strangers_acted:
        assert rows(scene, theirs=True) == scene.elsewhere, "another tenant's rows changed"
    for operation_id in Operation.objects.filter(tenant=scene.people.tenant).values_list("pk", flat=True):
        answer = scene.stranger.get(f"/operations/{operation_id}")
        assert (answer.status_code, slug_of(answer)) == (404, "not-found")


def _no_wider_scopes(scene: Scene) -> None:
    for attempt in Attempt.objects.filter(descends_from__isnull=False).select_related("descends_from"):
        assert attempt.descends_from is not None
        assert set(attempt.scopes) <= set(attempt.descends_from.scopes), f"{attempt} has wider scopes"


def _open_questions_are_owned(scene: Scene) -> None:
    open_attempts = Attempt.objects.filter(tenant=scene.people.tenant, state__in=OPEN_QUESTION)
    conflicts = ReviewItem.objects.filter(tenant=scene.people.tenant, closed_at=None)
    wanted = {*open_attempts.values_list("pk", flat=True), *conflicts.values_list("attempt_id", flat=True)}
    listed = {row.attempt_id: row for row in scene.listed()}
    assert wanted == set(listed)
    for row in listed.values():
        assert row.owner.group, f"{row.operation_key} has no owner"


def _only_who_had_leave_called(scene: Scene) -> None:
    """Deliveries, recovery and pages send nothing: every call of the tool is an agent's, or one that the
    ledger's own sender had leave for."""
    own = Event.objects.filter(kind=EventKind.DISPATCHED, actor_kind="sender").count()
    posts = len(scene.provider.requests("POST")) - scene.posts_before
    assert posts <= scene.sent_by_agents + own
