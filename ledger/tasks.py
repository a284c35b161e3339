"""Celery's entry points. A message is a hint: each task finds its own work; a lost or doubled one is
harmless."""

from __future__ import annotations

from celery import shared_task

from ledger import fsck
from ledger.deliveries import deliver_once
from ledger.models import FsckForm
from ledger.reconciliation import reconcile_once, send_once, sweep_once

FSCK_MAY_TAKE_S = 50 * 60
"""A whole run may take its time; a broker gives a message away again after an hour."""


@shared_task(name="ledger.tasks.sweep")
def sweep() -> None:
    sweep_once()


@shared_task(name="ledger.tasks.reconcile")
def reconcile() -> None:
    if reconcile_once().more:
        reconcile.apply_async(retry=False, expires=4)


@shared_task(name="ledger.tasks.send")
def send() -> None:
    if send_once().more:
        send.apply_async(retry=False, expires=4)


@shared_task(name="ledger.tasks.deliver")
def deliver() -> None:
    if deliver_once(drain=False).more:
        deliver.apply_async(retry=False, expires=4)


@shared_task(
    name="ledger.tasks.fsck_touched", soft_time_limit=FSCK_MAY_TAKE_S, time_limit=FSCK_MAY_TAKE_S + 60
)
def fsck_touched() -> None:
    fsck.in_background(FsckForm.TOUCHED)


@shared_task(name="ledger.tasks.fsck_whole", soft_time_limit=FSCK_MAY_TAKE_S, time_limit=FSCK_MAY_TAKE_S + 60)
def fsck_whole() -> None:
    fsck.in_background(FsckForm.WHOLE)
