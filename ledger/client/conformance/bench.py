"""What every check needs: sending a message, and saying what should have come of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ledger.client.conformance.effects import Effects
from ledger.client.conformance.findings import Check, Fault
from ledger.client.conformance.messages import Message, Signer
from ledger.client.conformance.wire import NO_ANSWER, Wire


@dataclass(frozen=True)
class Bench:
    signer: Signer
    wire: Wire
    effects: Effects | None = None

    def send(
        self,
        check: Check,
        message: Message,
        *,
        by: Sequence[bytes] = (),
        late_s: float = 0,
        replay: bool = False,
    ) -> int:
        """Signed now as the ledger signs; the status."""
        check.sent += 1
        sent = self.signer.headers(message, by=by, late_s=late_s, replay=replay)
        return self.wire.post(sent, message.body)

    def accepted(
        self,
        check: Check,
        message: Message,
        what: str,
        *,
        by: Sequence[bytes] = (),
        replay: bool = False,
        otherwise: Fault = Fault.REFUSED_GOOD,
    ) -> bool:
        """It must be answered 2xx."""
        status = self.send(check, message, by=by, replay=replay)
        if not is_2xx(status):
            check.found(otherwise, f"{what}: {told(status)}")
        return is_2xx(status)

    def refused(
        self, check: Check, headers: Mapping[str, str], message: Message, what: str, *, otherwise: Fault
    ) -> None:
        """It must not be answered 2xx, and never be applied."""
        check.sent += 1
        status = self.wire.post(headers, message.body)
        if is_2xx(status):
            check.found(otherwise, f"{what}: {told(status)}")
        check.expect(message.webhook_id, 0, more=Fault.APPLIED_FORGERY)


def is_2xx(status: int) -> bool:
    return 200 <= status < 300


def told(status: int) -> str:
    return "no answer" if status == NO_ANSWER else f"answered {status}"
