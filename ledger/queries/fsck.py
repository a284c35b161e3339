"""How the ledger stands by the runs of fsck that are kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta

from ledger.models import FsckForm, FsckRun

NIGHTLY_AT = time(3, 0)  # UTC
STALE_AFTER = {FsckForm.TOUCHED: timedelta(minutes=15), FsckForm.WHOLE: timedelta(hours=26)}
"""A run of what was touched is due every minute, but waits for a whole one to end."""


@dataclass(frozen=True)
class LastRun:
    """The newest run of one form; no `run` where there was none. A whole run looked at what was touched too:
    its time counts for both."""

    form: FsckForm
    run: FsckRun | None
    checked_at: datetime | None

    def is_stale(self, now: datetime) -> bool:
        """Has it not run for longer than it may take?"""
        return self.checked_at is None or now - self.checked_at > STALE_AFTER[self.form]


def newest_runs() -> tuple[FsckRun, ...]:
    """The newest run of each form that has run at all."""
    return tuple(FsckRun.objects.order_by("form", "-started_at").distinct("form"))


def last_runs() -> tuple[LastRun, ...]:
    """Of each form, in the order in which they are declared."""
    newest = {run.form: run for run in newest_runs()}
    whole = newest.get(FsckForm.WHOLE)
    return tuple(_last(form, newest.get(form), whole) for form in FsckForm)


def standing_runs() -> tuple[FsckRun, ...]:
    """Those that say how the ledger stands: a clean whole run answers older ones of what was touched."""
    newest = {run.form: run for run in newest_runs()}
    whole, touched = newest.get(FsckForm.WHOLE), newest.get(FsckForm.TOUCHED)
    answered = whole and touched and not whole.findings_count and whole.started_at >= touched.started_at
    return tuple(run for run in (whole, None if answered else touched) if run is not None)


def whole_is_due(now: datetime) -> bool:
    """Has no whole run begun since the last night's hour? One missed is made up for at the next chance."""
    night = datetime.combine(now.date(), NIGHTLY_AT, tzinfo=now.tzinfo)
    if night > now:
        night -= timedelta(days=1)
    return not FsckRun.objects.filter(form=FsckForm.WHOLE, started_at__gte=night).exists()


def _last(form: FsckForm, run: FsckRun | None, whole: FsckRun | None) -> LastRun:
    times = [one.started_at for one in (run, whole) if one is not None]
    return LastRun(form, run, max(times, default=None))
