"""The Celery app and its periodic work. A message is a hint: losing or doubling one is harmless."""

import os

from celery import Celery, signals
from celery.schedules import crontab

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("ledger")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

SWEEP_EVERY_S = 2.0
"""Each look for due work expires soon after the next is queued: a stopped worker finds no backlog."""

FSCK_EVERY_S = 60.0

app.conf.beat_schedule = {
    "sweep": {
        "task": "ledger.tasks.sweep",
        "schedule": SWEEP_EVERY_S,
        "options": {"expires": 2 * SWEEP_EVERY_S},
    },
    "reconcile": {
        "task": "ledger.tasks.reconcile",
        "schedule": SWEEP_EVERY_S,
        "options": {"expires": 2 * SWEEP_EVERY_S},
    },
    "send": {
        "task": "ledger.tasks.send",
        "schedule": SWEEP_EVERY_S,
        "options": {"expires": 2 * SWEEP_EVERY_S},
    },
    "deliver": {
        "task": "ledger.tasks.deliver",
        "schedule": SWEEP_EVERY_S,
        "options": {"expires": 2 * SWEEP_EVERY_S},
    },
    "fsck_touched": {
        "task": "ledger.tasks.fsck_touched",
        "schedule": FSCK_EVERY_S,
        "options": {"expires": FSCK_EVERY_S},
    },
    "fsck_whole": {  # due once a night; asked every hour, so that a night slept through is made up for
        "task": "ledger.tasks.fsck_whole",
        "schedule": crontab(minute="17"),
        "options": {"expires": 1800},
    },
}


@signals.worker_shutdown.connect
def record_what_is_under_way(**_: object) -> None:
    """What consumers answer to messages already sent is kept, else they would get them again."""
    from ledger.deliveries import stop_sending  # noqa: PLC0415  # the settings name this module

    stop_sending()


@signals.task_prerun.connect
def look_at_the_connection(**_: object) -> None:
    """One that broke is closed before the next task. Celery itself keeps it for CELERY_DB_REUSE_MAX tasks,
    and for so long nothing would be swept after the database was gone for a moment."""
    from django.db import close_old_connections  # noqa: PLC0415  # the settings name this module

    close_old_connections()
