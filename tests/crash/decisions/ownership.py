"""What people say about whose an item is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from ledger.models import ReviewItem
from ledger.rules.vocabulary import DecisionKind as K
from review import ownership
from tests.crash.decisions.case import WHY, About, Case, again, on_item, sent, who
from tests.support.cast import Cast


def claimed(people: Cast, number: int) -> About:
    about = sent(people, number)
    ownership.claim(people.second_operator, about["item"])
    return about


def claimed_by_oneself(people: Cast, number: int) -> About:
    about = sent(people, number)
    ownership.claim(people.operator, about["item"])
    return about


def snoozed(people: Cast, number: int) -> About:
    about = sent(people, number)
    ownership.snooze(people.second_operator, about["item"], until=timedelta(hours=1), why=WHY)
    return about


OWNERSHIP: Mapping[str, Case] = {
    "claim": again(on_item(sent, K.CLAIM, lambda by, pk, _: ownership.claim(by, pk))),
    "assign": Case(
        sent,
        lambda a: ownership.assign(who("admin"), a["item"], to="operator", why=WHY),
        lambda a: ReviewItem.objects.filter(pk=a["item"], owner__username="operator").count(),
    ),
    "snooze": again(
        on_item(
            sent,
            K.SNOOZE,
            lambda by, pk, _: ownership.snooze(by, pk, until=timedelta(hours=1), why=WHY),
        )
    ),
    "wake": on_item(snoozed, K.WAKE, lambda by, pk, _: ownership.wake(by, pk)),
    "wait on": again(
        on_item(sent, K.WAIT_ON, lambda by, pk, _: ownership.wait_on(by, pk, what="the bank", why=WHY))
    ),
    "note": again(on_item(sent, K.NOTE, lambda by, pk, _: ownership.note(by, pk, why=WHY))),
    "take over": on_item(claimed, K.TAKE_OVER, lambda by, pk, _: ownership.take_over(by, pk, why=WHY)),
    "hand over": on_item(
        claimed_by_oneself,
        K.HAND_OVER,
        lambda by, pk, _: ownership.hand_over(by, pk, to="second-operator", why=WHY),
    ),
    "release": on_item(claimed_by_oneself, K.RELEASE, lambda by, pk, _: ownership.release(by, pk)),
}
