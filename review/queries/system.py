"""Is the system at work, and is what it wrote still right: for administrators and auditors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ledger.deliveries import Trouble, troubles_of_destinations
from ledger.models import FsckForm, FsckRun, Pulse, User
from ledger.queries.fsck import LastRun, last_runs, standing_runs
from ledger.transactions import database_clock
from review.door import NotVisible
from review.queries.tenants import held_by

RIGHTS = ("administer", "audit")
PARTS: Mapping[str, str] = {
    "sweep": "Ends leases, approvals and waits that are over",
    "reconcile": "Asks providers what became of unknown attempts",
    "send": "Sends what the ledger itself is to send",
    "deliver": "Tells consumers of results",
}
QUIET_AFTER = timedelta(seconds=60)


@dataclass(frozen=True)
class Heartbeat:
    """One part that works by itself, and when it last ran to its end (None: never)."""

    name: str
    does: str
    at: datetime | None
    is_quiet: bool


@dataclass(frozen=True)
class FoundFault:
    """One place where an invariant is broken; `tenant` is "" for what is the whole system's."""

    invariant: str
    tenant: str
    subject_id: str
    detail: str


@dataclass(frozen=True)
class RunView:
    """The newest run of one form. `checked_at`: when what it covers was last looked at, by it or a whole one.

    `findings_count` counts what this person may know of, `findings` are the first of them, `elsewhere` says
    that there are others. `stands`: no newer clean whole run has answered it.
    """

    form: FsckForm
    started_at: datetime | None
    duration_s: float | None
    checked_at: datetime | None
    is_stale: bool
    stands: bool
    invariants: int
    findings_count: int
    findings: tuple[FoundFault, ...]
    elsewhere: bool


@dataclass(frozen=True)
class SystemPage:
    """Everything the page shows, read at `as_of`. `troubles`: of destinations that hear nothing."""

    heartbeats: tuple[Heartbeat, ...]
    runs: tuple[RunView, ...]
    troubles: tuple[Trouble, ...]
    as_of: datetime

    @property
    def is_red(self) -> bool:
        return any(run.stands and (run.findings_count or run.elsewhere) for run in self.runs)


def may_see_system(user: User) -> bool:
    """Whether this person administers or audits any tenant."""
    return held_by(user, *RIGHTS).exists()


def system_page(user: User) -> SystemPage:
    """The page. Raises `NotVisible` for whoever neither administers nor audits a tenant."""
    own = _tenants_in_charge_of(user)
    if not own:
        raise NotVisible
    now = database_clock()
    standing = {run.pk for run in standing_runs()}
    return SystemPage(
        heartbeats=_heartbeats(now),
        runs=tuple(_run_view(last, own, standing, now) for last in last_runs()),
        troubles=tuple(each for each in troubles_of_destinations() if each.tenant in own),
        as_of=now,
    )


def faults_known_to(user: User) -> int:
    """In how many places the newest runs found an invariant broken, as far as this person may know."""
    broken = [run for run in standing_runs() if run.counts]
    own = _tenants_in_charge_of(user) if broken else frozenset()
    return max((_counted(run, own) for run in broken if own), default=0)


def _tenants_in_charge_of(user: User) -> frozenset[str]:
    """Slugs."""
    return frozenset(held_by(user, *RIGHTS).values_list("content_object__slug", flat=True))


def _heartbeats(now: datetime) -> tuple[Heartbeat, ...]:
    beats = {pulse.name: pulse.at for pulse in Pulse.objects.filter(name__in=PARTS)}
    return tuple(
        Heartbeat(
            name=name,
            does=does,
            at=beats.get(name),
            is_quiet=name not in beats or now - beats[name] > QUIET_AFTER,
        )
        for name, does in PARTS.items()
    )


def _run_view(last: LastRun, own: frozenset[str], standing: set[int], now: datetime) -> RunView:
    run = last.run
    known = [_fault(found) for found in run.findings if _is_known(found["tenant"], own)] if run else []
    counted = _counted(run, own) if run else 0
    return RunView(
        form=last.form,
        started_at=run.started_at if run else None,
        duration_s=(run.ended_at - run.started_at).total_seconds() if run else None,
        checked_at=last.checked_at,
        is_stale=last.is_stale(now),
        stands=run is not None and run.pk in standing,
        invariants=run.invariants if run else 0,
        findings_count=counted,
        findings=tuple(known),
        elsewhere=run is not None and run.findings_count > counted,
    )


def _fault(found: Mapping[str, Any]) -> FoundFault:
    return FoundFault(found["invariant"], found["tenant"], found["subject_id"], found["detail"])


def _counted(run: FsckRun, own: frozenset[str]) -> int:
    return sum(number for tenant, number in run.counts.items() if _is_known(tenant, own))


def _is_known(tenant: str, own: frozenset[str]) -> bool:
    """What is the whole system's concerns everybody who is in charge of a part of it."""
    return not tenant or tenant in own
