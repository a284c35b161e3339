"""What is pressed beside items: deliveries, destinations, facts that came early, the forms themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from ledger.models import (
    Delivery,
    Destination,
    Event,
    ParkedNote,
    PlannedRedelivery,
    RedeliveryPlan,
)
from ledger.rules.states import DeliveryState
from ledger.rules.vocabulary import EventKind
from ledger.transactions import database_clock
from review import deliveries, destinations, parked, presses
from review.destinations import Wanted
from review.models import PressNonce
from review.queries.dead_letters import DeadFilter
from review.queries.destinations import newest_secret
from tests.crash.decisions.case import SLUG, WHY, About, Case, again, held, who
from tests.crash.decisions.facts import parked as parked_fact
from tests.support import make, told
from tests.support.cast import Cast

ADDRESS = "https://93.184.216.34/hooks"


def a_delivery(people: Cast, number: int) -> About:
    if not Destination.objects.filter(tenant=people.tenant).exists():
        told.destination(people.tenant)
    delivery = told.delivery_of(make.confirmed(people.key, result_ref=f"res_{number}"))
    return {
        "delivery": delivery.pk,
        "operation": delivery.operation_id,
        "destination": delivery.destination_id,
        "secret": newest_secret(delivery.destination_id),
        "name": f"dest-{number}",
    }


def a_dead_letter(people: Cast, number: int) -> About:
    about = a_delivery(people, number)
    deliveries.give_up(people.operator, about["delivery"], why="down")
    return about


def a_form(people: Cast, number: int) -> About:
    about = held(people, number)
    return {**about, "press": presses.new_press(people.approver, about["item"], "digest")}


def the_only_dead_letter(people: Cast, number: int) -> About:
    for earlier in Delivery.objects.filter(tenant=people.tenant, state=DeliveryState.DEAD_LETTERED):
        deliveries.redeliver(people.operator, earlier.pk, why=WHY)
    return a_dead_letter(people, number)


def a_plan(people: Cast, number: int) -> About:
    about = the_only_dead_letter(people, number)
    return {**about, "plan": _plan(about)}


def a_paused_destination(people: Cast, number: int) -> About:
    about = another_destination(people, number)
    destinations.pause(people.admin, about["destination"], why=WHY)
    return about


def another_destination(people: Cast, number: int) -> About:
    return {"destination": told.destination(people.tenant, name=f"dest-{number}").pk}


def _plan(about: About) -> str:
    chosen = DeadFilter(about["destination"])
    return deliveries.plan_redelivery(who("operator"), chosen, until=database_clock(), why=WHY, rate_per_s=1)


def _plans(about: About) -> int:
    return PlannedRedelivery.objects.filter(delivery_id=about["delivery"]).count()


def _noted(about: About) -> int:
    return ParkedNote.objects.filter(fact_id=about["fact"], why=WHY).count()


def _paused(about: About) -> int:
    return Destination.objects.filter(pk=about["destination"], paused_at__isnull=False).count()


def _told(kind: EventKind) -> Callable[[About], int]:
    return lambda a: Event.objects.filter(kind=kind, operation_id=a["operation"], body__contains=WHY).count()


DELIVERIES: Mapping[str, Case] = {
    "redeliver": Case(
        a_dead_letter,
        lambda a: deliveries.redeliver(who("operator"), a["delivery"], why=WHY),
        _told(EventKind.DELIVERY_REDELIVERED),
    ),
    "give up": Case(
        a_delivery,
        lambda a: deliveries.give_up(who("operator"), a["delivery"], why=WHY),
        _told(EventKind.DELIVERY_DEAD_LETTERED),
    ),
    "plan redelivery": again(Case(the_only_dead_letter, _plan, _plans)),
    "cancel a plan": Case(
        a_plan,
        lambda a: deliveries.cancel_plan(who("operator"), a["plan"]),
        lambda a: RedeliveryPlan.objects.filter(pk=a["plan"], cancelled_by__username="operator").count(),
    ),
    "note on a parked fact": again(
        Case(parked_fact, lambda a: parked.note(who("operator"), a["fact"], why=WHY), _noted)
    ),
    "dismiss a parked fact": Case(
        parked_fact, lambda a: parked.dismiss(who("operator"), a["fact"], why=WHY), _noted
    ),
    "add a destination": Case(
        a_delivery,
        lambda a: destinations.add(who("admin"), Wanted(SLUG, a["name"], ADDRESS, "response")),
        lambda a: Destination.objects.filter(name=a["name"]).count(),
    ),
    "pause a destination": Case(
        another_destination,
        lambda a: destinations.pause(who("admin"), a["destination"], why=WHY),
        _paused,
    ),
    "resume a destination": Case(
        a_paused_destination,
        lambda a: destinations.resume(who("admin"), a["destination"], why=WHY),
        lambda a: 1 - _paused(a),
    ),
    "rotate a secret": Case(
        a_delivery,
        lambda a: destinations.rotate_secret(
            who("admin"), a["destination"], overlap=timedelta(hours=1), replaces=a["secret"]
        ),
        lambda a: int(newest_secret(a["destination"]) != a["secret"]),
    ),
    "use a press": Case(
        a_form,
        lambda a: presses.use_press(who("approver"), a["press"], a["item"], "digest"),
        lambda a: 1 - PressNonce.objects.filter(item_id=a["item"]).count(),
    ),
}
