"""Every row of the ledger's tables before and after, and what was written that is more than evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.db import connection

Rows = dict[tuple[str, str], dict[str, Any]]

HEAD_OF_HISTORY = {"event_count", "head_hash"}
WHEN_IT_WORKED = {"ledger_pulse", "ledger_turn"}
"""That a process did its round, and when it asked: nothing of what happened."""


def all_rows() -> Rows:
    """By table and primary key."""
    found: Rows = {}
    with connection.cursor() as cursor:
        for label in ("ledger", "review"):
            for model in apps.get_app_config(label).get_models(include_auto_created=True):
                key, table = model._meta.pk.column, model._meta.db_table
                cursor.execute(f'SELECT "{key}"::text, to_jsonb(t)::text FROM "{table}" t')  # noqa: S608
                found |= {(table, pk): json.loads(row) for pk, row in cursor.fetchall()}
    return found


def beyond_evidence(before: Rows, after: Rows) -> list[str]:
    """What was written and is no evidence: in so many words, sorted."""
    return sorted({written for written in _written(before, after) if written})


def _written(before: Rows, after: Rows) -> Iterator[str]:
    for place in before.keys() | after.keys():
        table = place[0]
        old, new = before.get(place), after.get(place)
        if old == new or table in WHEN_IT_WORKED:
            continue
        if old is None:
            yield "" if table in {"ledger_event", "ledger_lookup"} else f"{table} added"
        elif new is None:
            yield f"{table} removed"
        else:
            changed = {column for column in new if new[column] != old[column]}
            yield "" if _is_evidence(table, changed) else f"{table} {', '.join(sorted(changed))}"


def _is_evidence(table: str, changed: set[str]) -> bool:
    """An event moves the head of its operation's history; what was said of an attempt is kept beside it; a
    key remembers when it was used; an answer says when the provider was last heard."""
    allowed = {
        "ledger_attempt": {"positive_evidence", "provider_request_id", "success_reported"},
        "ledger_operation": HEAD_OF_HISTORY,
        "ledger_apikey": {"last_used_at"},
        "ledger_provider": {"last_answer_at"},
    }
    return changed <= allowed.get(table, set())
