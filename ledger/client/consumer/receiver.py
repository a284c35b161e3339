"""A consumer's whole handler: the raw request in, a status and a reason out; 2xx only after the commit."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from ledger.client.consumer.event import Event
from ledger.client.consumer.headers import Headers
from ledger.client.consumer.inbox import Cursor, Inbox, Taken
from ledger.client.consumer.verify import NotFromTheLedger, Verifier

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """What to answer the ledger. `reason` may be sent along: it repeats nothing secret. `event` and `taken`
    are missing where the work failed or it was not from the ledger."""

    status: int
    reason: str
    event: Event | None = None
    taken: Taken | None = None


class Receiver:
    """`transaction` opens one and gives its cursor, commits when it is left and rolls back when it is left by
    an exception; `work` is done with that cursor, at most once per result."""

    def __init__(
        self,
        verifier: Verifier,
        *,
        transaction: Callable[[], AbstractContextManager[Cursor]],
        inbox: Inbox,
        work: Callable[[Cursor, Event], object],
    ) -> None:
        self._verifier = verifier
        self._transaction = transaction
        self._inbox = inbox
        self._work = work

    def receive(self, headers: Headers, body: bytes, *, now: float | None = None) -> Answer:
        """400: not from the ledger. 500: the work or its commit failed, and the ledger sends it again.
        200: it is committed, or there was nothing to do. Raises TypeError where `body` is not bytes."""
        try:
            event = self._verifier.verify(headers, body, now=now)
        except NotFromTheLedger as why:
            return Answer(400, str(why))
        try:
            taken = self._apply(event)
        except Exception as failed:
            logger.exception("The result %s was not applied; the ledger sends it again", event.webhook_id)
            return Answer(500, f"not applied: {type(failed).__name__}")
        return Answer(200, taken.value, event, taken)

    def _apply(self, event: Event) -> Taken:
        taken: Taken | None = None
        with self._transaction() as cursor:
            found = self._inbox.take(cursor, event)
            if found is Taken.NEW:
                self._work(cursor, event)
            taken = found
        if taken is None:
            raise RuntimeError("the transaction swallowed the error of the work")
        return taken
