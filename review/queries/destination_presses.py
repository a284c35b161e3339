"""What can be done with a destination: each button with what it does now, or why it cannot be pressed."""

from __future__ import annotations

from ledger.models import Destination
from review.door import right_needed
from review.queries.delivery_values import PressView
from review.rights import Rights


def presses_of(
    destination: Destination, rights: Rights, *, undelivered: int, held: int
) -> tuple[PressView, ...]:
    """Pause or resume, test event, secret rotation."""
    no_right = "" if rights.administer else right_needed(destination.tenant, "administer")
    paused = destination.paused_at is not None
    return (
        _resume(destination, no_right, held) if paused else _pause(destination, no_right, undelivered),
        PressView(
            "test",
            "Send a test event",
            f"Posts one signed test event to {destination.name} now. It is about no operation, and no tool "
            f"runs.",
            no_right,
        ),
        PressView(
            "rotate-secret",
            "Rotate the secret",
            "Makes a new secret and shows it once. The one before signs beside it for as long as you choose.",
            no_right,
        ),
    )


def _pause(destination: Destination, no_right: str, undelivered: int) -> PressView:
    says = (
        f"Sends {destination.name} nothing more: {undelivered} waiting now, and all to come, are held until "
        f"somebody resumes it."
    )
    return PressView("pause", "Pause destination", says, no_right)


def _resume(destination: Destination, no_right: str, held: int) -> PressView:
    says = (
        f"Sends {destination.name} the {held} held for it, at most {destination.most_at_once} at once, with "
        f"its record of failures forgotten."
    )
    return PressView("resume", "Resume destination", says, no_right)
