"""One file per noun. Import models from here."""

from ledger.models.access import AccessChange
from ledger.models.attempt import Attempt, LookUp
from ledger.models.delivery import (
    Delivery,
    DeliveryAck,
    DeliveryTry,
    PlannedRedelivery,
    RedeliveryPlan,
    Settlement,
)
from ledger.models.destination import Destination, DestinationChange, DestinationSecret
from ledger.models.event import Event, Refusal
from ledger.models.fsck import FsckForm, FsckRun
from ledger.models.operation import Operation
from ledger.models.parked import ParkedFact, ParkedNote
from ledger.models.people import Agent, ApiKey, ReviewGroup, Tenant, User
from ledger.models.policy import PolicySnapshot, Provider
from ledger.models.pulse import Pulse
from ledger.models.review import Approval, ApprovalUse, Decision, ReviewItem, Vote
from ledger.models.run import BudgetAccount, BudgetEntry, BudgetUnit, Run, RunCheckpoint
from ledger.models.statement import Statement
from ledger.models.turn import Turn

__all__ = [
    "AccessChange",
    "Agent",
    "ApiKey",
    "Approval",
    "ApprovalUse",
    "Attempt",
    "BudgetAccount",
    "BudgetEntry",
    "BudgetUnit",
    "Decision",
    "Delivery",
    "DeliveryAck",
    "DeliveryTry",
    "Destination",
    "DestinationChange",
    "DestinationSecret",
    "Event",
    "FsckForm",
    "FsckRun",
    "LookUp",
    "Operation",
    "ParkedFact",
    "ParkedNote",
    "PlannedRedelivery",
    "PolicySnapshot",
    "Provider",
    "Pulse",
    "RedeliveryPlan",
    "Refusal",
    "ReviewGroup",
    "ReviewItem",
    "Run",
    "RunCheckpoint",
    "Settlement",
    "Statement",
    "Tenant",
    "Turn",
    "User",
    "Vote",
]
