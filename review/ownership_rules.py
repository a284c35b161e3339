"""The rules of ownership as an administrator types, saves and applies them.

Each raises `NotVisible` and `NotPermitted`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import IntegrityError

from ledger import lifecycle
from ledger.lifecycle import DecisionRefused
from ledger.models import Tenant, User
from ledger.rules.names import LONGEST_SCOPE
from ledger.rules.ownership import OwnershipRule
from ledger.rules.vocabulary import Effect, ReviewReason
from ledger.transactions import Busy, database_clock, durable
from review.door import enter_tenant, enter_tenant_to_write, require_administrator
from review.models import OwnershipEntry, OwnershipVersion
from review.ownership import UnknownAssignee, assignee_of
from review.queries.ownership_moves import DryRun, Move, MoveRow, dry_run, moves_by_rules, rows_of_moves
from review.reach import Reach

MOST_RULES = 50
MOST_AT_ONCE = 100


@dataclass(frozen=True)
class TypedRule:
    """One rule as typed: `owner` is a user name or `#team`, an empty `reason` or `effect` stands for all.
    With a `destination` it is about dead letters alone."""

    tool_glob: str
    reason: str = ""
    effect: str = ""
    owner: str = ""
    destination: str = ""


class BadRules(ValueError):
    """Some of the typed rules cannot be: for each its place, from 0, the field, and what is wrong with it."""

    def __init__(self, faults: Sequence[tuple[int, str, str]]) -> None:
        super().__init__("; ".join(f"rule {place + 1}: {message}" for place, _, message in faults))
        self.faults = tuple(faults)


class RulesChanged(Exception):
    """Somebody saved other rules since these were opened."""


@dataclass(frozen=True)
class Applied:
    """What became of open items when rules were applied: each, and why it was refused (empty: moved). `left`:
    how many were not asked about yet."""

    told: tuple[tuple[MoveRow, str], ...]
    left: int

    @property
    def moved(self) -> int:
        return sum(not refused for _, refused in self.told)


def read_rules(tenant: Tenant, typed: Sequence[TypedRule]) -> tuple[OwnershipRule, ...]:
    """The typed rules, their teams and people found. Raises `BadRules`."""
    if len(typed) > MOST_RULES:
        raise BadRules([(MOST_RULES, "tool", f"At most {MOST_RULES} rules.")])
    faults: list[tuple[int, str, str]] = []
    rules = [_read(tenant, place, rule, faults) for place, rule in enumerate(typed)]
    if faults:
        raise BadRules(faults)
    return tuple(rule for rule in rules if rule is not None)


def try_rules(user: User, slug: str, typed: Sequence[TypedRule]) -> DryRun:
    """What the typed rules would do to open items, without saving them. Raises `BadRules`."""
    tenant, rights = enter_tenant(user, slug)
    require_administrator(tenant, rights)
    return dry_run(tenant.pk, read_rules(tenant, typed))


def save_rules(
    user: User, slug: str, typed: Sequence[TypedRule], *, based_on: int, reach: Reach, why: str
) -> int:
    """Put these rules in force, as the version after `based_on`, which they were made from; its number.
    Nothing that is open moves by that alone: `apply_rules` does it. Raises `BadRules` and `RulesChanged`.
    """

    def save() -> int:
        tenant, rights = enter_tenant_to_write(user, slug)
        require_administrator(tenant, rights)
        rules = read_rules(tenant, typed)
        if _newest(tenant) != based_on:
            raise RulesChanged
        saved = OwnershipVersion.objects.create(
            tenant=tenant,
            version=based_on + 1,
            saved_by=user,
            saved_at=database_clock(),
            why=why,
            reach=reach,
        )
        OwnershipEntry.objects.bulk_create(_entry(saved, place, rule) for place, rule in enumerate(rules))
        return saved.version

    try:
        return durable(save)
    except IntegrityError:
        raise RulesChanged from None


def apply_rules(user: User, slug: str, *, reach: Reach, why: str) -> Applied:
    """Ask the rules in force about open items: the unowned ones, or all. At most 100 at once, each in a
    transaction of its own, which asks right and rules anew."""
    tenant, rights = enter_tenant(user, slug)
    require_administrator(tenant, rights)
    if reach is Reach.NEW:
        return Applied((), 0)
    wanted = [move for move in moves_by_rules(tenant.pk) if move.unowned or reach is Reach.ALL]
    asked = wanted[:MOST_AT_ONCE]
    refusals = [_apply(user, slug, move, why) for move in asked]
    rows = rows_of_moves(tenant.pk, asked)
    return Applied(tuple(zip(rows, refusals, strict=True)), left=len(wanted) - len(asked))


def _apply(user: User, slug: str, move: Move, why: str) -> str:
    """Why it was refused; empty: done."""

    def assign() -> None:
        require_administrator(*enter_tenant_to_write(user, slug))
        lifecycle.assign_by_rules(item_id=move.item_id, by=user, was=move.was, why=why)

    try:
        durable(assign)
    except DecisionRefused as refusal:
        return refusal.message
    except Busy:
        return "Its rows stayed locked by others."
    return ""


def _read(
    tenant: Tenant, place: int, typed: TypedRule, faults: list[tuple[int, str, str]]
) -> OwnershipRule | None:
    problem = _glob_problem(typed.tool_glob)
    if problem:
        faults.append((place, "tool", problem))
    if typed.reason not in ("", *ReviewReason):
        faults.append((place, "reason", "There is no such reason."))
    faults += [(place, *fault) for fault in _destination_faults(typed)]
    if typed.effect not in ("", *Effect):
        faults.append((place, "effect", "There is no such effect."))
    try:
        person, team = assignee_of(tenant, typed.owner)
    except UnknownAssignee as error:
        faults.append((place, "owner", str(error) if typed.owner else "Choose a team or a person."))
        return None
    if faults:
        return None
    return OwnershipRule(
        tool_glob=typed.tool_glob,
        reason=ReviewReason(typed.reason) if typed.reason else None,
        effect=Effect(typed.effect) if typed.effect else None,
        team=team.pk if team else None,
        person=person.pk if person else None,
        destination_glob=typed.destination,
    )


def _destination_faults(typed: TypedRule) -> list[tuple[str, str]]:
    if not typed.destination:
        return []
    found = [("destination", _glob_problem(typed.destination).replace("tool glob", "destination"))]
    if typed.reason:
        found.append(("reason", "A dead letter has no reason of review: leave it at any."))
    if typed.owner and not typed.owner.startswith("#"):
        found.append(("owner", "Dead letters are a team's: choose one."))
    return [fault for fault in found if fault[1]]


def _glob_problem(glob: str) -> str:
    if 1 <= len(glob) <= LONGEST_SCOPE and glob.isprintable() and glob == glob.strip():
        return ""
    return f"A tool glob has 1–{LONGEST_SCOPE} printable characters, for example refund.* or *."


def _newest(tenant: Tenant) -> int:
    versions = OwnershipVersion.objects.filter(tenant=tenant).order_by("-version")
    return versions.values_list("version", flat=True).first() or 0


def _entry(saved: OwnershipVersion, place: int, rule: OwnershipRule) -> OwnershipEntry:
    return OwnershipEntry(
        tenant_id=saved.tenant_id,
        version=saved,
        place=place,
        tool_glob=rule.tool_glob,
        reason=rule.reason or "",
        effect=rule.effect or "",
        team_id=rule.team,
        person_id=rule.person,
        destination_glob=rule.destination_glob,
    )
