import os
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks

from ledger.faults import ARMED, watchers


class LedgerConfig(AppConfig):
    name = "ledger"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        checks.register(no_fault_point_in_production)


def no_fault_point_in_production(**_: Any) -> list[checks.CheckMessage]:
    """A process that kills itself on purpose has no place where real effects are at stake."""
    if settings.DEVELOPMENT or not (os.environ.get(ARMED) or watchers):
        return []
    return [
        checks.Error(
            f"{ARMED} is set, or a fault point is watched: this process would kill itself in its work.",
            hint=f"Unset {ARMED}; both are for tests only.",
            id="ledger.E001",
        )
    ]
