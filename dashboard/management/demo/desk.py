"""The one press that somebody of the demo makes alone, so that a dead letter is there to be looked at."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.db import connection

from dashboard.management.demo.stories import FERNHILL
from ledger.models import Delivery, User
from ledger.rules.states import DeliveryState
from review import deliveries

SHOP = "order-book"
BY = "chen"
WHY = "Entered by hand while the order is counted."
LOOK_EVERY_S = 3.0


class Desk:
    """Of two results that the shop does not take, chen gives up the first; the other goes on waiting."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._next_look_at = 0.0
        self._done = False

    def look(self) -> None:
        """Now and then, until it is done."""
        if self._done or time.monotonic() < self._next_look_at:
            return
        self._next_look_at = time.monotonic() + LOOK_EVERY_S
        try:
            self._done = self._press()
        finally:
            connection.close()

    def _press(self) -> bool:
        """Whether there is a dead letter now."""
        told = Delivery.objects.filter(tenant__slug=FERNHILL, destination__name=SHOP).order_by("pk")
        if told.filter(dead_at__isnull=False).exists():
            return True
        refused = list(
            told.filter(state=DeliveryState.SENT, lease_until=None).values_list("pk", flat=True)[:2]
        )
        if len(refused) < 2:
            return False
        deliveries.give_up(User.objects.get(username=BY), refused[0], why=WHY)
        self._tell("desk: chen gave up a result that the shop does not take; it is under Dead letters")
        return True
