"""Where an agent can die, in the order in which one operation meets them."""

from dataclasses import dataclass
from enum import StrEnum


class Boundary(StrEnum):
    """The agent is killed here, the first time it arrives."""

    BEFORE_INTENT = "before_intent"
    AFTER_INTENT = "after_intent"
    AFTER_LEAVE = "after_leave"
    WHILE_SENDING = "while_sending"  # the provider has done it, the agent does not know
    BEFORE_REPORT = "before_report"
    AFTER_REPORT = "after_report"


@dataclass(frozen=True)
class Place:
    """Before or after the request to the ledger whose path ends so."""

    call: str
    after: bool


PLACES = {
    Boundary.BEFORE_INTENT: Place("/intents", after=False),
    Boundary.AFTER_INTENT: Place("/intents", after=True),
    Boundary.AFTER_LEAVE: Place("/dispatch", after=True),
    Boundary.BEFORE_REPORT: Place("/outcome", after=False),
    Boundary.AFTER_REPORT: Place("/outcome", after=True),
}
