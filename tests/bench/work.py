"""Operations as a busy ledger has them: most confirmed, some in doubt, some decided by people.

A hundred are made by the real verbs; the others are copies with ids, hashes and digests of their own.
"""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from django.db import connection, models, transaction

from ledger import lifecycle
from ledger.models import (
    Approval,
    ApprovalUse,
    Attempt,
    BudgetAccount,
    BudgetEntry,
    Decision,
    Delivery,
    Destination,
    Event,
    LookUp,
    Operation,
    ReviewItem,
    Run,
    Settlement,
    Vote,
)
from ledger.models.base import TenantRow
from ledger.queries.invariants.scope import options_of
from ledger.rules.chain import CHAIN_START, event_hash
from ledger.rules.digest import vote_digest
from ledger.rules.looked_up import LookedUpKind, Record
from ledger.transactions import durable
from tests.support import make
from tests.support.cast import cast

SEEDS = 100
COPIES_AT_ONCE = 20
APART = 1_000_000
IDS = re.compile(r"\b((?:op|att|evt|rev|dlv|msg|dec|apr)_[0-9a-z]{19})([0-9a-z]{7})\b")
COPIED: tuple[type[TenantRow], ...] = (
    Run, BudgetAccount, Operation, Attempt, Event, LookUp, Settlement, Delivery, ReviewItem, Decision,
    Approval, Vote, ApprovalUse, BudgetEntry,
)  # fmt: skip


class Work:
    """One tenant's work, drawn from a seed."""

    def __init__(self, draw: random.Random) -> None:
        self.draw, self.cast, self.operations = draw, cast(), 0
        Destination.objects.create(
            tenant=self.cast.tenant, name="books", url="https://books.example/", ack="response"
        )

    def fill(self, number: int) -> Iterator[int]:
        """Make so many operations, all but the first hundred by copying; says how many there are."""
        self.make(min(SEEDS, number))
        originals = {model: list(model._default_manager.all()) for model in COPIED}
        copies = max(0, number // SEEDS - 1)
        for first in range(1, copies + 1, COPIES_AT_ONCE):
            copied = range(first, min(first + COPIES_AT_ONCE, copies + 1))
            with transaction.atomic():
                _copy(originals, copied)
            self.operations += SEEDS * len(copied)
            yield self.operations

    def make(self, number: int) -> None:
        """Make so many operations by the real verbs."""
        kinds: list[tuple[int, Callable[[str], object]]] = [
            (78, self.confirmed), (6, self.failed), (6, self.found), (4, self.decided), (4, self.approved),
            (1, self.unknown), (1, self.held),
        ]  # fmt: skip
        weights, verbs = zip(*kinds, strict=True)
        run = f"run-{self.operations}"
        durable(lambda: lifecycle.open_run(key=self.cast.key, name=run, limits={"tool_calls": 1_000}))
        for verb in self.draw.choices(verbs, weights, k=number):
            verb(run)
        self.operations += number

    def confirmed(self, run: str) -> None:
        make.confirmed(self.cast.key, make.MAIL, run=run)

    def failed(self, run: str) -> None:
        sent = make.dispatched(self.cast.key, make.TICKET, run=run)
        make.reported(self.cast.key, sent, "failed", no_effect=True, error_class="declined")

    def found(self, run: str) -> None:
        record = Record(reference="msg", content="same", state="done")
        make.looked_up(make.unknown(self.cast.key, run=run), LookedUpKind.FOUND, record)

    def decided(self, run: str) -> None:
        item, by = make.item_of(make.for_a_person(self.cast.key, run=run)), self.cast.operator
        durable(lambda: lifecycle.confirm_happened(item_id=item.pk, by=by, why="seen", reference="t"))

    def approved(self, run: str) -> None:
        held = make.held(self.cast.key, run=run)
        item, by = make.item_of(held), self.cast.approver
        durable(lambda: lifecycle.approve(item_id=item.pk, by=by, why="wanted"))
        sent = make.send(self.cast.key, make.fresh(held))
        make.reported(self.cast.key, sent, "succeeded", result_ref="d")

    def unknown(self, run: str) -> None:
        make.unknown(self.cast.key, make.MAIL, run=run)

    def held(self, run: str) -> None:
        make.held(self.cast.key, run=run)


class WorkInDoubt(Work):
    """Mails of which nobody has heard, each of a run of its own."""

    def make(self, number: int) -> None:
        for one in range(self.operations, self.operations + number):
            run = f"run-{one}"
            durable(partial(lifecycle.open_run, key=self.cast.key, name=run, limits={"tool_calls": 1000}))
            self.unknown(run)
        self.operations += number


def _copy(originals: dict[type[TenantRow], list[Any]], numbers: range) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
    made: dict[type[TenantRow], list[Any]] = {model: [] for model in COPIED}
    for number in numbers:
        copies: dict[type[TenantRow], list[Any]] = {
            model: [_copied(row, number) for row in rows] for model, rows in originals.items()
        }
        _chain(copies[Operation], copies[Event])
        _sign(copies[Vote], {attempt.pk: attempt for attempt in copies[Attempt]})
        for model, rows in copies.items():
            made[model] += rows
    for model, rows in made.items():
        model._default_manager.bulk_create(rows, batch_size=1_000)


def _copied(row: TenantRow, number: int) -> TenantRow:
    fresh = copy.copy(row)
    fresh._state = copy.copy(row._state)
    fresh._state.fields_cache = {}
    for field in options_of(row).concrete_fields:
        setattr(fresh, str(field.attname), _renamed(field, getattr(row, str(field.attname)), number))
    for name, column in (("operation_key", Operation), ("name", Run)):
        if isinstance(row, column):
            setattr(fresh, name, f"{getattr(row, name)}-{number}")
    if isinstance(row, Event):
        fresh.written_in = models.Func(function="pg_current_xact_id")  # type: ignore[attr-defined]
    return fresh


def _renamed(field: models.Field[Any, Any], value: Any, number: int) -> Any:
    if isinstance(value, str):
        return IDS.sub(lambda found: f"{found[1]}{number:07d}", value)
    numbered = field.primary_key or (isinstance(field, models.ForeignKey) and field.related_model in COPIED)
    return value + number * APART if numbered and isinstance(value, int) else value


def _chain(operations: list[Operation], events: list[Event]) -> None:
    heads = {operation.pk: CHAIN_START for operation in operations}
    for event in sorted(events, key=lambda event: (event.operation_id, event.sequence)):
        event.previous_hash = heads[event.operation_id]
        event.hash = heads[event.operation_id] = event_hash(event.previous_hash, event.hashed_fields)
    for operation in operations:
        operation.head_hash = heads[operation.pk]


def _sign(votes: list[Vote], attempts: dict[str, Attempt]) -> None:
    for vote in votes:
        attempt = attempts[vote.attempt_id]
        vote.digest = vote_digest(
            tenant=str(vote.tenant_id), operation=attempt.operation_id, attempt=attempt.pk, tool=attempt.tool,
            args_hash=attempt.args_hash, rule_hash=vote.rule_hash, scopes=vote.scopes,
            generation=vote.generation, approver=str(vote.approver_id), meaning=vote.meaning,
            expires_at=vote.expires_at,
        )  # fmt: skip
