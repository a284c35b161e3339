"""The clerk child: reads and writes the database for the lane, and is never struck itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db import close_old_connections, connection
from django.db.models import Exists, OuterRef, Q

from ledger.fsck import run_fsck
from ledger.models import FsckForm, ReviewItem, Statement
from review.models import TenantPermission
from tests.crash.suite import tenants, verdict
from tests.crash.suite.children import Line
from tests.crash.suite.effects import Effects, effects_in
from tests.crash.suite.kept import Kept
from tests.crash.suite.plan import plan_from
from tests.crash.suite.standing import standing_of
from tests.crash.suite.tenants import DECIDING

KEPT = frozenset({"ledger_pulse"})


@dataclass(frozen=True)
class Urls:
    """Where the processes outside of the product are."""

    provider: str
    consumer: str


def work(line: Line, urls: Urls) -> None:
    """Do what the lane asks until the lane is gone."""

    def answer(command: dict[str, Any]) -> Any:
        close_old_connections()
        return _COMMANDS[command["do"]](command, urls)

    line.answer_forever(answer)


def _prepare(command: dict[str, Any], urls: Urls) -> Any:
    return tenants.prepare(plan_from(command["plan"]), urls.provider, urls.consumer).as_data


def _happen(command: dict[str, Any], urls: Urls) -> None:
    world = tenants.World(**command["world"])
    tenants.happen(plan_from(command["plan"]), world, command["what"], command["number"], urls.provider)


def _standing(command: dict[str, Any], _urls: Urls) -> Any:
    return standing_of(command["tenant_id"], delivers=command["delivers"])


def _judge(command: dict[str, Any], _urls: Urls) -> Any:
    marks = tuple(command["correlation_ids"])
    return verdict.judge(
        verdict.Case(
            effects=Effects(
                tenant_id=command["tenant_id"],
                marks=marks,
                blind=frozenset(command["blind"]),
                resumed=command["resumed"],
                found=tuple(effects_in(Path(command["effects"]), marks)),
            ),
            kept=Kept(tuple(map(Path, command["journals"])), tuple(map(Path, command["spools"]))),
            may_wait=command["may_wait"],
            quiet_at=command["quiet_at"],
            books=Path(command["books"]),
            places=tuple(command["places"]),
        )
    )


def _check_everything(_command: dict[str, Any], _urls: Urls) -> list[str]:
    """The whole fsck, over all tenants and the database itself."""
    leave_one_of_those_alike()
    found = run_fsck(FsckForm.WHOLE).findings
    return [f"{finding.invariant} {finding.subject_id}: {finding.detail}" for finding in found]


def leave_one_of_those_alike() -> None:
    """Whoever decides and has nothing of their own sees the numbers that the agent's owner sees: their pages
    are not counted again, which is most of what the whole fsck costs."""
    items = ReviewItem.objects.filter(Q(owner=OuterRef("user")) | Q(claimed_by=OuterRef("user")))
    said = Statement.objects.filter(by=OuterRef("user"))
    idle = TenantPermission.objects.filter(user__username__regex=f"^({'|'.join(DECIDING)})-")
    seeing = idle.filter(~Exists(items), ~Exists(said), permission__codename="view_work")
    seeing.delete()


def _empty(_command: dict[str, Any], _urls: Urls) -> None:
    """Throw the tenants of past schedules away, so that a long run costs what a short one does."""
    tables = [
        model._meta.db_table
        for model in apps.get_models()
        if model._meta.app_label in {"ledger", "review"} and model._meta.managed
    ]
    with connection.cursor() as cursor:
        cursor.execute("SET ledger.allow_truncate = 'on'")
        cursor.execute(f"TRUNCATE {', '.join(set(tables) - KEPT)} CASCADE")
        cursor.execute("SET ledger.allow_truncate = 'off'")


_COMMANDS = {
    "prepare": _prepare,
    "happen": _happen,
    "standing": _standing,
    "judge": _judge,
    "check_everything": _check_everything,
    "empty": _empty,
}
