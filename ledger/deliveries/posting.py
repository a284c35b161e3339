"""Post one signed message once; whatever goes wrong is an end of the try, never an exception."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ledger import http
from ledger.rules.deliveries import TryEnd, end_of
from ledger.transactions import monotonic_s


@dataclass(frozen=True)
class Posted:
    """How it ended, as the sender saw it. `sent_headers` is empty where nothing was sent."""

    end: TryEnd
    took_ms: int = 0
    status: int | None = None
    sent_headers: Mapping[str, str] = field(default_factory=dict)
    answer_headers: Mapping[str, str] = field(default_factory=dict)
    answer: bytes = b""
    answer_cut: bool = False
    detail: str = ""


def post(url: str, *, headers: Mapping[str, str], body: bytes) -> Posted:
    """Send it. Call it outside any transaction."""
    began_s = monotonic_s()
    try:
        answer = http.request("POST", url, headers=headers, content=body)
    except http.AddressRefused as why:
        return Posted(TryEnd.BLOCKED, _ms(began_s), detail=str(why))
    except http.NotConnected as why:
        return Posted(TryEnd.NOT_CONNECTED, _ms(began_s), detail=str(why))
    except http.OutgoingError as why:
        return Posted(TryEnd.NO_ANSWER, _ms(began_s), sent_headers=headers, detail=str(why))
    return Posted(
        end_of(answer.status),
        _ms(began_s),
        status=answer.status,
        sent_headers=headers,
        answer_headers=answer.headers,
        answer=answer.body,
        answer_cut=answer.cut,
    )


def _ms(began_s: float) -> int:
    return int((monotonic_s() - began_s) * 1000)
