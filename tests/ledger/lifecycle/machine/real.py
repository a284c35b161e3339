"""The same things done to the real ledger: its verbs on PostgreSQL, with time moved instead of waited for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from itertools import count
from typing import Any

from django.db import connection, transaction
from django.db.models import F

from ledger import lifecycle
from ledger.lifecycle import DecisionRefused, LeaveGiven, OutcomeReport
from ledger.models import ApiKey, Approval, Attempt, BudgetAccount, Operation, ReviewItem, Tenant, User
from ledger.policies import publish_policy
from ledger.reconciliation import sweep_once
from ledger.rules.canonical import canonical_bytes
from ledger.rules.looked_up import LookedUp, LookedUpKind, Record
from ledger.transactions import database_clock, durable
from tests.ledger.lifecycle.machine.facts import Said, Seen
from tests.ledger.lifecycle.machine.values import PRICES, Tool
from tests.support import make
from tests.support.cast import Cast

TOOL = "machine.run"
KEY, RUN = "the-operation", "the-run"
LONG_AGO = timedelta(minutes=2)

_words = count(1)


def _args(content: str) -> dict[str, Any]:
    """Arguments with a price, written in each way a price may be written."""
    price = PRICES[content]
    written = {"a": float(price), "b": int(price), "c": str(price), "d": str(price)}[content]
    return {"content": content, "price": written, "currency": "eur" if content in "ac" else "EUR"}


@contextmanager
def undone() -> Any:
    """A block that the verbs do not see and that leaves nothing behind."""
    block: Any = transaction.atomic()
    block._from_testcase = True
    with block:
        yield
        transaction.set_rollback(True)


class Real:
    """One operation of one tool, under a policy whose versions have names."""

    def __init__(self, cast: Cast, tool: Tool, *, limit: int | None, money_limit: Decimal | None) -> None:
        self.cast, self.tool, self.key = cast, tool, cast.key
        self.publish("first")
        limits = {"tool_calls": limit, "EUR": money_limit}
        durable(lambda: lifecycle.open_run(key=cast.key, name=RUN, limits=limits))

    # --- the world -----------------------------------------------------------------------------------------

    def publish(self, version: str) -> None:
        tools = {} if version == "none" else {TOOL: self._rule(version)}
        document = {"default": "refuse", "tools": tools}
        durable(lambda: publish_policy(tenant=self.cast.tenant, document=document, by=None))

    def _rule(self, version: str) -> dict[str, Any]:
        tool = self.tool
        rule: dict[str, Any] = {
            "effect": "read" if tool.read else "write",
            "idempotent": tool.idempotent,
            "key_ttl_s": 86_400 if tool.idempotent else 0,
            "confirm": "lookup" if tool.confirm_by_lookup else "receipt",
            "review": "always" if tool.review_always or version == "review" else "on_unknown",
            "approvals": tool.approvals,
            "max_checks": tool.max_checks,
            "max_attempts": tool.max_attempts,
            "approval_ttl_s": 7_200 if version == "changed" else 3_600,
            "cost": {"amount": "/price", "unit": "/currency"},
        }
        return {**rule, "provider": "bank"} if tool.lookup else rule

    def set_key(self, *, live: bool) -> None:
        """Revoke the key, or give the agent a new one."""
        if live:
            self.key = make.key(self.cast.agent)
        else:
            ApiKey.objects.filter(agent=self.cast.agent, revoked_at=None).update(revoked_at=database_clock())

    def set_tenant(self, *, active: bool) -> None:
        suspended_at = None if active else database_clock()
        Tenant.objects.filter(pk=self.cast.tenant.pk).update(suspended_at=suspended_at)

    # --- agents --------------------------------------------------------------------------------------------

    def post(self, content: str) -> str:
        intent = make.intent_of(TOOL, args=_args(content), operation_key=KEY, run=RUN)
        return str(make.posted(self.key, intent).kind)

    def leave(self, attempt: Attempt) -> tuple[bool, str]:
        """Whether leave was given, and the directive the agent had before it asked."""
        told = lifecycle.standing_of(attempt)
        answer = make.ask_leave(self.key, told.attempt)
        return isinstance(answer, LeaveGiven), str(told.directive)

    def report(self, attempt: Attempt, said: Said, *, words: str = "") -> None:
        failed = {"no_effect": said.definite, "error_class": "declined" if said.definite else "timeout"}
        told = OutcomeReport(
            worker_id="worker-1",
            outcome=said.outcome,
            result_ref=said.result,
            provider_request_id=said.request,
            retryable=said.retryable,
            message=words or f"report {next(_words)}",
            usage={"tool_calls": said.tool_calls} if said.tool_calls else {},
            **(failed if said.outcome == "failed" else {}),  # type: ignore[arg-type]
        )
        durable(lambda: lifecycle.record_outcome(key=self.key, attempt_id=attempt.pk, report=told))

    def name_request(self, attempt: Attempt, request: str) -> None:
        durable(
            lambda: lifecycle.record_provider_request(
                key=self.key,
                attempt_id=attempt.pk,
                worker_id=f"w{next(_words)}",
                provider_request_id=request,
            )
        )

    def cancel(self) -> None:
        operation = Operation.objects.get()
        durable(lambda: lifecycle.cancel_operation(key=self.key, operation_id=operation.pk, reason="no need"))

    # --- providers and time --------------------------------------------------------------------------------

    def look_up(self, attempt: Attempt, seen: Seen, *, stale: bool) -> None:
        records = tuple(
            Record(reference=reference, content=content, state=state)  # type: ignore[arg-type]
            for reference, content, state in seen.records
        )
        answer = LookedUp(LookedUpKind(seen.kind), records)
        epoch = attempt.lookup_epoch + int(stale)
        durable(
            lambda: lifecycle.apply_answer(
                attempt_id=attempt.pk, epoch=epoch, asked_at=database_clock(), provider=None, looked_up=answer
            )
        )

    def let_time_pass(self, attempt: Attempt) -> None:
        """Past the settle window, the back-off, and the spacing of two negatives."""
        later = {"send_again_at": F("send_again_at") - LONG_AGO * 10}
        make.waited(Attempt.objects.filter(pk=attempt.pk), LONG_AGO, **later)

    def end_lease(self, attempt: Attempt) -> None:
        Attempt.objects.filter(pk=attempt.pk, state="DISPATCHED").update(lease_until=database_clock())
        sweep_once()

    def never_come(self, attempt: Attempt) -> None:
        waiting = Attempt.objects.filter(pk=attempt.pk, start_by__isnull=False)
        waiting.update(start_by=database_clock())
        sweep_once()

    def expire_approval(self, attempt: Attempt) -> None:
        """Its end is fixed in the row, so it is moved past the triggers."""
        waiting = Approval.objects.filter(attempt=attempt, used_at=None, voided_at=None)
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            waiting.update(expires_at=database_clock())
            cursor.execute("SET LOCAL session_replication_role = origin")
        sweep_once()

    # --- people --------------------------------------------------------------------------------------------

    def decide(self, attempt: Attempt, decision: Callable[..., Any], by: User, **more: Any) -> bool:
        """Whether it was possible; a refusal leaves nothing behind."""
        item = ReviewItem.objects.filter(attempt=attempt).order_by("-opened_at", "-pk").first()
        if item is None:
            return False
        try:
            durable(lambda: decision(item_id=item.pk, by=by, why="because", **more))
        except DecisionRefused:
            return False
        return True

    def correct(self, attempt: Attempt, content: str, by: User) -> bool:
        args = _args(content)
        return self.decide(
            attempt, lifecycle.relink_arguments, by, args=args, args_bytes=canonical_bytes(args)
        )

    # --- what is stored ------------------------------------------------------------------------------------

    def attempts(self) -> list[Attempt]:
        return list(Attempt.objects.select_related("operation", "policy").order_by("number"))

    def account(self, unit: str) -> BudgetAccount:
        return BudgetAccount.objects.get(run__name=RUN, unit=unit)
