"""What each plant changes: the product without one of its safeguards."""

from __future__ import annotations

import queue
import secrets
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

import psycopg
from django.db import connection, models, transaction

SLOW_COMMIT_S = 0.05


def everywhere(old: Any, new: Any) -> None:
    """Put `new` wherever the product has `old` by name, in every module that is loaded."""
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith(("ledger.", "review.")):
            for name in [name for name, value in vars(module).items() if value is old]:
                setattr(module, name, new)


def unlocked(*names: str) -> None:
    """Rows of these models are read without a lock."""
    locked = models.QuerySet.select_for_update

    def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.all() if self.model.__name__ in names else locked(self, *args, **kwargs)

    models.QuerySet.select_for_update = read  # type: ignore[method-assign]


def no_operation_lock() -> None:
    unlocked("Operation")


def no_locks() -> None:
    unlocked("Operation", "Attempt", "ReviewItem", "Approval")


def no_locks_no_old_state() -> None:
    """… and a move does not ask whether the attempt is still in the state it was read in."""
    from ledger.lifecycle import moves
    from ledger.models import Attempt

    def write(case: Any, attempt: Any, source: Any, columns: dict[str, Any]) -> None:
        Attempt.objects.filter(pk=attempt.pk).update(**columns)
        for name, value in columns.items():
            setattr(attempt, name, value)

    no_locks()
    moves._write = write


def successor_at_approval() -> None:
    """The next attempt is opened when it is approved, and waits while the last one may have happened."""
    from ledger.lifecycle import approving
    from ledger.lifecycle.leave import _successor
    from ledger.policies import rule_in_force

    approve = approving._approve

    def opened_at_once(case: Any, attempt: Any, votes: Any) -> None:
        approve(case, attempt, votes)
        if attempt.was_sent:
            approval = case.approvals.pop(attempt.pk)
            _successor(case, attempt, rule_in_force(attempt.tenant_id, attempt.tool), approval)

    approving._approve = opened_at_once


def lease_end_is_a_failure() -> None:
    """Who was not heard of within the send lease is taken to have done nothing."""
    from ledger.events import SYSTEM
    from ledger.lifecycle.locking import locked_attempt
    from ledger.lifecycle.moves import move
    from ledger.lifecycle.timers import end_send_lease
    from ledger.rules.states import State

    def ended(*, attempt_id: str) -> bool:
        with locked_attempt(attempt_id, tenant_id=None, actor=SYSTEM) as (case, attempt):
            over = attempt.lease_until is not None and attempt.lease_until <= case.now
            if attempt.state == State.DISPATCHED and over:
                move(case, attempt, State.FAILED_RETRYABLE, failure="timeout")
            return over

    everywhere(end_send_lease, ended)


def leave_for_unknown() -> None:
    """Leave is given again while nobody knows whether the first send happened."""
    from ledger.lifecycle import leave
    from ledger.rules import directive
    from ledger.rules.directive import Directive

    leave._ROWS = tuple(row for row in leave._ROWS if row is not _row_of_unknown(leave))
    leave._look_up_first = lambda ask: False  # noqa: ARG005
    leave.needs_approval = lambda attempt: attempt.held_at is not None
    directive.ROWS = tuple(row for row in directive.ROWS if row[1] is not Directive.RECONCILE)


def _row_of_unknown(leave: Any) -> Any:
    """IN_FLIGHT for DISPATCHED, for an unapproved UNKNOWN, and while it backs off: the second of them."""
    return [row for row in leave._ROWS if row[0] is leave.LeaveProblem.IN_FLIGHT][1]


def one_negative_is_enough() -> None:
    """The first *absent* proves that nothing happened: no settle window, no second answer."""
    from ledger.rules import reconcile

    reconcile.NEGATIVES_NEEDED = 1
    reconcile._Case.settled = property(lambda _case: True)  # type: ignore[assignment,method-assign]


def absent_without_canary() -> None:
    """An *absent* is believed although the look-up sees nothing at all."""
    from ledger.rules import reconcile
    from ledger.rules.looked_up import LookedUpKind

    unreadable = (LookedUpKind.UNAVAILABLE, LookedUpKind.ADAPTER_FAILED)
    blind = property(lambda case: case.looked_up.kind in unreadable)
    reconcile._Case.unreachable = blind  # type: ignore[assignment,method-assign]


def digest_unchecked() -> None:
    """A vote is not asked whether what it was given for still holds."""
    from ledger import approvals

    approvals._still_means = lambda *_facts: True


def failed_there_is_done() -> None:
    """What the provider took and could not do is read as done."""
    from ledger.providers.reading import state_of

    def read(*asked: Any) -> Any:
        state = state_of(*asked)
        return "done" if state == "failed" else state

    everywhere(state_of, read)


def unreadable_is_absent() -> None:
    """No whole answer is taken for an empty one."""
    from ledger.providers.reading import absent, no_answer

    everywhere(no_answer, lambda _why: absent(seen=True, credential=""))


def epoch_ignored() -> None:
    """The answer of a reconciler that lost its look-up lease decides like any other."""
    from ledger.lifecycle.findings import apply_answer
    from ledger.models import Attempt

    def applied(*, attempt_id: str, epoch: int, **answer: Any) -> Any:
        now = Attempt.objects.values_list("lookup_epoch", flat=True).get(pk=attempt_id)
        return apply_answer(attempt_id=attempt_id, epoch=max(epoch, now), **answer)

    everywhere(apply_answer, applied)


def deadline_by_now() -> None:
    """The time is that of the transaction's start, however long it waited for its locks."""
    from ledger.transactions import database_clock

    def started_at() -> Any:
        with connection.cursor() as cursor:
            cursor.execute("SELECT now()")
            return cursor.fetchone()[0]

    everywhere(database_clock, started_at)


def approval_spent_apart() -> None:
    """The use of an approval is committed by itself, so that it outlives the rollback of its leave."""
    from ledger.lifecycle import leave

    def use(case: Any, attempt: Any) -> Any:
        approval = case.approvals.pop(attempt.pk, None)
        if approval is not None:
            approval.used_at = case.now
            with psycopg.connect(connection.connection.info.dsn, autocommit=True) as other:
                spent = "UPDATE ledger_approval SET used_at = %s WHERE id = %s"
                other.execute(spent, [case.now, approval.pk])
        return approval

    unlocked("Approval")
    leave._use = use


def approval_not_spent() -> None:
    """An approval leads to as many sends as are asked for while it lasts."""
    from ledger.lifecycle import leave

    leave._use = lambda case, attempt: case.approvals.get(attempt.pk)
    leave._record_use = lambda *_use: None


def budget_reset_on_resume() -> None:
    """Who opens its run again finds nothing spent."""
    from ledger.lifecycle.runs import open_run
    from ledger.models import BudgetAccount

    def opened(*, key: Any, name: str, limits: Any) -> Any:
        BudgetAccount.objects.filter(run__tenant_id=key.tenant_id, run__name=name).update(reserved=0, spent=0)
        return open_run(key=key, name=name, limits=limits)

    everywhere(open_run, opened)


def outcome_before_commit() -> None:
    """An outcome is acknowledged while its transaction is still under way."""
    _answered_before_commit("take_outcome")


def leave_before_commit() -> None:
    """Leave is told while its transaction is still under way."""
    _answered_before_commit("_leave_and_standing")


def _answered_before_commit(name: str) -> None:
    from ledger.ingest.calls import call_verb

    def answered(verb: Callable[..., Any], **arguments: Any) -> Any:
        if verb.__name__ != name:
            return call_verb(verb, **arguments)
        return _early(call_verb, verb, arguments)

    everywhere(call_verb, answered)


def _early(call_verb: Callable[..., Any], verb: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    answers: queue.Queue[Any] = queue.Queue()

    @wraps(verb)
    def told(**same: Any) -> Any:
        answers.put(verb(**same))
        time.sleep(SLOW_COMMIT_S)

    def work() -> None:
        try:
            call_verb(told, **arguments)
        except BaseException as error:  # noqa: BLE001  (told to whoever waits for the answer)
            answers.put(error)
        finally:
            connection.close()

    threading.Thread(target=work).start()
    answer = answers.get()
    if isinstance(answer, BaseException):
        raise answer
    return answer


def authority_asked_once() -> None:
    """What was allowed when the intent was recorded is not asked again when leave is given."""
    from ledger.lifecycle import leave

    leave._check_authority = lambda ask: None  # noqa: ARG005


def key_made_up() -> None:
    """Every send shows the provider a key of its own."""
    from ledger.rules.keys import idempotency_key

    everywhere(idempotency_key, lambda *_fixed_by: f"il-{secrets.token_hex(16)}")


def late_success_ignored() -> None:
    """A receipt that comes after its send lease ended settles nothing."""
    from ledger.lifecycle import outcomes
    from ledger.rules.reports import EVIDENCE
    from ledger.rules.states import State

    judged = outcomes._judged

    def on_time(case: Any, attempt: Any, key: Any, heard: Any, report: Any) -> Any:
        late = attempt.state != State.DISPATCHED and heard.succeeded
        return EVIDENCE if late else judged(case, attempt, key, heard, report)

    outcomes._judged = on_time


def webhook_id_per_try() -> None:
    """Each try is a message of its own."""
    from ledger.deliveries import claiming
    from ledger.models.ids import webhook_id

    claim_of = claiming._claim_of

    def renamed(begun: Any, start_by_s: float) -> Any:
        return replace(claim_of(begun, start_by_s), webhook_id=webhook_id())

    claiming._claim_of = renamed


def deliveries_after_the_settlement() -> None:
    """What is to be told is written down once the settlement is committed."""
    from ledger import outbox
    from ledger.transactions import durable

    enqueue = outbox.enqueue

    def later(settlement: Any, planned: Any, *, now: Any) -> None:
        if planned:
            transaction.on_commit(lambda: durable(lambda: enqueue(settlement, planned, now=now)))

    outbox.enqueue = later


def acknowledged_before_it_is_sent() -> None:
    """A try is taken for received when it begins."""
    from ledger.deliveries import sender
    from ledger.deliveries.posting import Posted
    from ledger.deliveries.recording import Ended, record_ends
    from ledger.rules.deliveries import TryEnd
    from ledger.transactions import durable

    send_once = sender.send_once

    def sent(claim: Any) -> Any:
        received = Ended(claim, Posted(TryEnd.RECEIVED, status=200))
        durable(lambda: record_ends([received]))
        connection.close()
        send_once(claim)
        return received

    sender.send_once = sent


def dead_without_owner() -> None:
    """The first failure is the last try, and nobody is told that it is theirs."""
    from ledger.deliveries import moves
    from ledger.rules.backoff import delivery_wait_s

    save = moves._move

    def disowned(delivery: Any, target: Any, *kind: Any, **more: Any) -> None:
        delivery.owner_group = None
        save(delivery, target, *kind, **more)

    everywhere(delivery_wait_s, lambda *_tries, **_roll: None)
    moves._move = disowned
