"""The only writer of delivery state. Nothing here can reach what runs a tool: redeliver, never re-run."""

from ledger.deliveries.acknowledging import Acknowledged, UnknownDelivery, record_ack
from ledger.deliveries.destinations import add_destination, pause, resume, rotate_secret
from ledger.deliveries.redelivering import (
    RedeliveryRefused,
    cancel_plan,
    give_up,
    plan_redelivery,
    redeliver,
    run_plans,
)
from ledger.deliveries.sender import DeliverReport, deliver_once, stop_sending
from ledger.deliveries.testing import TestResult, send_test
from ledger.deliveries.troubles import Trouble, troubles_of_destinations

__all__ = [
    "Acknowledged",
    "DeliverReport",
    "RedeliveryRefused",
    "TestResult",
    "Trouble",
    "UnknownDelivery",
    "add_destination",
    "cancel_plan",
    "deliver_once",
    "give_up",
    "pause",
    "plan_redelivery",
    "record_ack",
    "redeliver",
    "resume",
    "rotate_secret",
    "run_plans",
    "send_test",
    "stop_sending",
    "troubles_of_destinations",
]
