"""What the demo's agents are busy with: believable work, computed from its number.

OPENING is played once, at once, and leaves every kind of work behind. Then CYCLE goes on, slowly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dashboard.management.demo.books import SLOW_METHOD
from dashboard.management.demo.jobs import Boundary, Job

FERNHILL, BRIGHTWATER = "fernhill", "brightwater"

CUSTOMERS = ("Mara Lindqvist", "Tom Adeyemi", "Sofia Marchetti", "Jonas Weber", "Priya Raman", "Leo Dubois")
PATIENTS = ("Nora Fields", "Samuel Ortiz", "Grace Kim", "Oskar Nilsen")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
SERVICES = ("checkout", "search", "stock-sync")
TROUBLES = (
    "Tent poles missing from parcel",
    "Boots arrived in two different sizes",
    "Courier says the address does not exist",
)


@dataclass(frozen=True)
class Act:
    """One piece of work, and where the agent dies on it (None: it does not).

    `changed_afterwards`: the agent posts it again under the same key with another amount.
    """

    story: Story
    stop_at: Boundary | None = None
    tenant: str = FERNHILL
    asks_a_person: bool = False
    changed_afterwards: bool = False
    requested_by: str | None = None

    def job(self, series: str, number: int) -> Job:
        """This act as work number `number`; the same number gives the same job for ever."""
        job = self.story(self.tenant, series, number)
        return replace(job, stop_at=self.stop_at, requested_by=self.requested_by)


Story = Callable[[str, str, int], Job]


def refund(tenant: str, series: str, number: int) -> Job:
    return _refund(tenant, series, number, method="card")


def bank_transfer(tenant: str, series: str, number: int) -> Job:
    return _refund(tenant, series, number, method=SLOW_METHOD)


def shipping_mail(tenant: str, series: str, number: int) -> Job:
    order = _order(series, number)
    args = {
        "to": _address(_pick(CUSTOMERS, number)),
        "subject": f"Your order {order} is on its way",
        "body": f"Good news: we have handed order {order} to the courier. It should arrive in two days.",
    }
    return _job(tenant, "mail", order, "mail.send", args)


def reminder(tenant: str, series: str, number: int) -> Job:
    visit = f"{series}-{number:04d}"
    when = f"{_pick(DAYS, number)} at {8 + number % 9}:{'30' if number % 2 else '00'}"
    args = {
        "to": _address(_pick(PATIENTS, number)),
        "subject": f"Your appointment on {when}",
        "body": f"We look forward to seeing you on {when}. Please call us if you cannot come.",
    }
    return _job(tenant, "reminder", visit, "mail.send", args)


def ticket(tenant: str, series: str, number: int) -> Job:
    order = _order(series, number)
    args = {
        "team": "Warehouse",
        "title": f"{_pick(TROUBLES, number)} ({order})",
        "body": f"{_pick(CUSTOMERS, number)} wrote about order {order} and sent a photograph.",
        "priority": "normal",
    }
    return _job(tenant, "ticket", order, "ticket.open", args)


def call_back(tenant: str, series: str, number: int) -> Job:
    visit = f"{series}-{number:04d}"
    patient = _pick(PATIENTS, number)
    args = {"team": "Reception", "title": f"Call {patient} back", "body": f"About visit {visit}."}
    return _job(tenant, "call-back", visit, "ticket.open", args)


def deployment(tenant: str, series: str, number: int) -> Job:
    service = _pick(SERVICES, number)
    args = {"service": service, "version": f"4.{number}.0", "environment": "production"}
    return _job(tenant, "deployment", f"{service}-4.{number}.0-{series}", "deploy.run", args)


def with_changed_amount(job: Job) -> Job:
    """The mistake an agent makes after losing its memory: the same key, another amount."""
    args = {**job.args, "amount": f"{float(str(job.args['amount'])) + 10:.2f}"}
    return replace(job, name=f"{job.name} (changed)", args=args, stop_at=None)


def _refund(tenant: str, series: str, number: int, *, method: str) -> Job:
    order = _order(series, number)
    args = {
        "order": order,
        "customer": _pick(CUSTOMERS, number),
        "amount": f"{18 + number * 7 % 90}.{number * 5 % 10}0",
        "currency": "EUR",
        "method": method,
    }
    return _job(tenant, "refund", order, "refund.create", args)


def _job(tenant: str, kind: str, of: str, tool: str, args: Mapping[str, Any]) -> Job:
    return Job(tenant=tenant, name=f"{kind} {of}", key=f"{kind}:{of}", tool=tool, args=args, step=of)


def _order(series: str, number: int) -> str:
    return f"{series}-{4820 + number}"


def _address(person: str) -> str:
    return f"{person.lower().replace(' ', '.')}@example.com"


def _pick(of: tuple[str, ...], number: int) -> str:
    return of[number % len(of)]


OPENING: tuple[Act, ...] = (
    Act(bank_transfer, Boundary.BEFORE_ANSWER, changed_afterwards=True),
    Act(shipping_mail, Boundary.BEFORE_SENDING, asks_a_person=True),
    Act(ticket, Boundary.BEFORE_ANSWER, asks_a_person=True),
    Act(refund, Boundary.BEFORE_SENDING),
    Act(refund),
    Act(reminder, Boundary.BEFORE_REPORT, BRIGHTWATER),
    Act(deployment, asks_a_person=True),
    Act(refund, Boundary.BEFORE_ANSWER),
    Act(call_back, Boundary.BEFORE_SENDING, BRIGHTWATER, asks_a_person=True),
    Act(shipping_mail),
    Act(refund, Boundary.BEFORE_LEAVE),
    Act(reminder, None, BRIGHTWATER),
)

CYCLE: tuple[Act, ...] = (
    Act(refund),
    Act(shipping_mail),
    Act(reminder, None, BRIGHTWATER),
    Act(refund, Boundary.BEFORE_ANSWER),
    Act(ticket),
    Act(shipping_mail),
    Act(call_back, None, BRIGHTWATER),
    Act(refund, Boundary.BEFORE_SENDING),
    Act(shipping_mail, Boundary.BEFORE_REPORT),
    Act(refund),
    Act(reminder, Boundary.BEFORE_SENDING, BRIGHTWATER, asks_a_person=True),
    Act(bank_transfer, Boundary.BEFORE_ANSWER),
    Act(shipping_mail),
    Act(ticket, Boundary.BEFORE_SENDING, asks_a_person=True, requested_by="ada"),
    Act(refund, Boundary.BEFORE_LEAVE),
    Act(deployment, asks_a_person=True),
)
"""`asks_a_person` acts are left out while enough questions wait on the desk."""
