"""What agents say before the ledger knows what it is about, and what joins it."""

from __future__ import annotations

from collections.abc import Mapping

from ledger.lifecycle import OutcomeReport, Told, join_late, take_outcome
from ledger.models import ApiKey, ParkedFact
from ledger.transactions import durable
from tests.crash.decisions.case import SLUG, About, Case
from tests.support import make
from tests.support.cast import Cast


def unheard_of(_: Cast, number: int) -> About:
    return {"key": f"early:{number}", "reference": f"res_{number}"}


def parked(people: Cast, number: int) -> About:
    about = unheard_of(people, number)
    _tell(about)
    return {**about, "fact": ParkedFact.objects.latest("parked_at").pk}


def known_meanwhile(people: Cast, number: int) -> About:
    about = unheard_of(people, number)
    attempt = make.dispatched(people.key, operation_key=about["key"])
    fact = make.unjoined(people.key, attempt, about["reference"])
    return {**about, "fact": fact.pk, "operation": attempt.operation_id}


def _key() -> ApiKey:
    return ApiKey.objects.select_related("agent__owner", "agent__tenant").get(agent__tenant__slug=SLUG)


def _tell(about: About) -> None:
    said = OutcomeReport(worker_id="worker-1", outcome="succeeded", result_ref=about["reference"])
    durable(lambda: take_outcome(key=_key(), told=Told("", about["key"]), report=said))


def _kept(about: About) -> int:
    return ParkedFact.objects.filter(operation_key=about["key"]).count()


def _joined(about: About) -> int:
    return ParkedFact.objects.filter(pk=about["fact"], joined_at__isnull=False).count()


FACTS: Mapping[str, Case] = {
    "park a fact": Case(unheard_of, _tell, _kept),
    "record what a fact waits for": Case(
        parked, lambda a: make.posted(_key(), make.intent_of(operation_key=a["key"])), _joined
    ),
    "join a fact late": Case(
        known_meanwhile, lambda a: durable(lambda: join_late(operation_id=a["operation"])), _joined
    ),
}
