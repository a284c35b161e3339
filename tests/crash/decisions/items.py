"""What people decide about the attempt of an item."""

from __future__ import annotations

from collections.abc import Mapping

from ledger.models import Approval, Attempt, Statement, Vote
from ledger.rules.vocabulary import DecisionKind as K
from review import decisions
from tests.crash.decisions.case import WHY, About, Case, again, by_two, held, item, on_item, sent, who
from tests.support import make
from tests.support.cast import Cast


def done_twice(people: Cast, number: int) -> About:
    """What was replaced is reported as done, and so is what replaced it."""
    first, second = make.replaced(people.key)
    make.reported(people.key, first, "succeeded", result_ref=f"msg_{number}")
    make.reported(people.key, second, "succeeded", result_ref=f"other_{number}")
    return item(first)


def by_two_half_given(people: Cast, number: int) -> About:
    about = by_two(people, number)
    decisions.approve(people.second_approver, about["item"], why=WHY)
    return about


def lost_refund(people: Cast, _: int) -> About:
    return item(make.unknown(people.key, make.REFUND))


def lost_mail(people: Cast, _: int) -> About:
    """Of a tool with a look-up."""
    return item(make.unknown(people.key))


def refund_said_once(people: Cast, number: int) -> About:
    about = lost_refund(people, number)
    decisions.confirm_did_not_happen(people.second_operator, about["item"], why=WHY)
    return about


def with_target(people: Cast, number: int) -> About:
    make.confirmed(people.key, make.TICKET, operation_key=f"ticket:{number}")
    return {**sent(people, number), "target": f"ticket:{number}"}


def with_new_target(people: Cast, number: int) -> About:
    return {**held(people, number), "target": f"deploy:new:{number}"}


def twin(people: Cast, number: int) -> About:
    step = {"run": "nightly", "step": str(number)}
    make.dispatched(people.key, make.TICKET, **step)
    return item(make.recorded(people.key, make.TICKET, **step))


def contradicted(people: Cast, number: int) -> About:
    """A person said that it did not happen, and then its agent said that it did."""
    closed = make.item_of(Attempt.objects.get(review_items=sent(people, number)["item"]))
    decisions.confirm_did_not_happen(people.operator, closed.pk, why=WHY)
    make.reported(people.key, closed.attempt, "succeeded", result_ref=f"re_{number}")
    return {**item(closed.attempt), "reference": f"re_{number}"}


def approved(about: About) -> int:
    """How many approvals wait to be used: pressed again, a yes may begin the next round."""
    waiting = Approval.objects.filter(used_at=None, voided_at=None)
    return waiting.filter(attempt__review_items=about["item"]).count()


ITEMS: Mapping[str, Case] = {
    "approve": Case(held, lambda a: decisions.approve(who("approver"), a["item"], why=WHY), approved),
    "approve, first of two": Case(
        by_two,
        lambda a: decisions.approve(who("approver"), a["item"], why=WHY),
        lambda a: Vote.objects.filter(decision__item_id=a["item"], voided_at=None).count(),
    ),
    "approve, second of two": Case(
        by_two_half_given,
        lambda a: decisions.approve(who("approver"), a["item"], why=WHY),
        approved,
    ),
    "reject": on_item(held, K.REJECT, lambda by, pk, _: decisions.reject(by, pk, why=WHY)),
    "reject, sent": on_item(
        sent, K.REJECT, lambda by, pk, _: decisions.reject(by, pk, why=WHY, what="did_not")
    ),
    "happened": on_item(
        sent,
        K.CONFIRM_HAPPENED,
        lambda by, pk, _: decisions.confirm_happened(by, pk, why=WHY, reference="re_1"),
    ),
    "did not": on_item(
        sent, K.CONFIRM_DID_NOT, lambda by, pk, _: decisions.confirm_did_not_happen(by, pk, why=WHY)
    ),
    "did not, first of two": Case(
        lost_refund,
        lambda a: decisions.confirm_did_not_happen(who("operator"), a["item"], why=WHY),
        lambda a: Statement.objects.filter(decision__item_id=a["item"], ended_at=None).count(),
    ),
    "did not, second of two": on_item(
        refund_said_once,
        K.CONFIRM_DID_NOT,
        lambda by, pk, _: decisions.confirm_did_not_happen(by, pk, why=WHY),
    ),
    "relink, arguments": on_item(
        held,
        K.RELINK_ARGUMENTS,
        lambda by, pk, _: decisions.relink_arguments(by, pk, why=WHY, typed='{"version": "2026.12"}'),
    ),
    "relink, operation": on_item(
        with_target,
        K.RELINK_OPERATION,
        lambda by, pk, a: decisions.relink_operation(by, pk, why=WHY, target_key=a["target"]),
    ),
    "relink, new operation": on_item(
        with_new_target,
        K.RELINK_OPERATION,
        lambda by, pk, a: decisions.relink_operation(by, pk, why=WHY, target_key=a["target"], new=True),
    ),
    "relink, record": again(
        on_item(
            lost_mail,
            K.RELINK_RECORD,
            lambda by, pk, _: decisions.relink_record(by, pk, why=WHY, reference="re_1"),
        )
    ),
    "re-check": again(on_item(lost_mail, K.RECHECK, lambda by, pk, _: decisions.recheck(by, pk, why=WHY))),
    "intended repeat": on_item(
        twin, K.INTENDED_REPEAT, lambda by, pk, _: decisions.intended_repeat(by, pk, why=WHY)
    ),
    "conflict, happened": on_item(
        contradicted,
        K.CONFLICT_HAPPENED,
        lambda by, pk, a: decisions.decide_conflict(
            by, pk, why=WHY, answer="happened", reference=a["reference"]
        ),
    ),
    "conflict, duplicate": on_item(
        done_twice,
        K.CONFLICT_DUPLICATE,
        lambda by, pk, _: decisions.decide_conflict(by, pk, why=WHY, answer="duplicate"),
    ),
    "conflict, stands": on_item(
        contradicted,
        K.CONFLICT_STANDS,
        lambda by, pk, _: decisions.decide_conflict(by, pk, why=WHY, answer="stands"),
    ),
}
