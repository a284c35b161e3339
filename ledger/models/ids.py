"""Identifiers: prefixed, sortable by creation, made in this one place."""

from __future__ import annotations

import secrets
import time
from datetime import datetime

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u
_LENGTH = 26


def _new(prefix: str) -> str:
    return prefix + _digits((time.time_ns() // 1_000_000) << 80 | secrets.randbits(80))


def _digits(number: int) -> str:
    digits = []
    for _ in range(_LENGTH):
        number, digit = divmod(number, 32)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


def operation_id() -> str:
    return _new("op_")


def attempt_id() -> str:
    return _new("att_")


def event_id() -> str:
    return _new("evt_")


def review_item_id() -> str:
    return _new("rev_")


def delivery_id() -> str:
    return _new("dlv_")


def first_delivery_id(at: datetime) -> str:
    """No delivery made since then has a smaller one, the clocks of the programs aside."""
    return "dlv_" + _digits(int(at.timestamp() * 1000) << 80)


def destination_id() -> str:
    return _new("dst_")


def webhook_id() -> str:
    return _new("msg_")


def redelivery_plan_id() -> str:
    return _new("pln_")


def decision_id() -> str:
    return _new("dec_")


def sender_id() -> str:
    """One pass of the ledger's own sender, as an agent's `worker_id` names one life of one process."""
    return _new("snd_")


def leave_id() -> str:
    return _new("lve_")


def parked_fact_id() -> str:
    return _new("fct_")


def approval_id() -> str:
    return _new("apr_")
