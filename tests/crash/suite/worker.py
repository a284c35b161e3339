"""The worker child: the product's own Celery tasks, called as their messages would."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any

from django.db import close_old_connections

from ledger import http, tasks
from ledger.models import Attempt
from ledger.providers.base import Question
from ledger.reconciliation import asking, resend
from tests.crash.suite.children import Line, Unplanned
from tests.crash.suite.injection import Injector

TRY_WITHIN_S = 0.3
LOGS = ("ledger.reconciliation.apart", "ledger.deliveries.sender")


def sign_sends(life_id: str) -> None:
    """Let the provider's journal say which process sent what, for which attempt; and be as patient as the
    schedule says, where the product waits for 20 s."""
    send, question_about, asked = http.request, asking.question_about, threading.local()

    def noted(attempt: Attempt) -> Question:
        asked.attempt = attempt.pk
        return question_about(attempt)

    def signed(method: str, url: str, *, headers: Mapping[str, str] | None = None, **more: Any) -> Any:
        signature = {"X-Sent-By": life_id, "X-Attempt": getattr(asked, "attempt", "")}
        with http.all_within(TRY_WITHIN_S):
            return send(method, url, headers={**(headers or {}), **signature}, **more)

    http.request = signed
    setattr(resend, "question_about", noted)  # noqa: B010  (it is another module's there)


def work(line: Line, injector: Injector, life_id: str) -> None:
    """Run passes until killed. A message that a task sends is handed to the lane, which may lose it."""
    sign_sends(life_id)
    for name in LOGS:
        logging.getLogger(name).addHandler(Unplanned(line))
    hints: list[str] = []
    for name in ("reconcile", "send", "deliver"):
        getattr(tasks, name).apply_async = lambda name=name, **_: hints.append(name)
    passes = {
        "sweep": tasks.sweep,
        "reconcile": tasks.reconcile,
        "send": tasks.send,
        "deliver": tasks.deliver,
    }

    def answer(command: dict[str, Any]) -> list[str]:
        if "faults" in command:
            injector.obey(command)
            return []
        hints.clear()
        close_old_connections()
        passes[command["task"]]()
        return list(hints)

    line.answer_forever(answer)
