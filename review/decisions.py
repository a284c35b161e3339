"""What a person decides about an item: the right is asked, then the ledger's verb called, in one transaction.

Each raises `NotVisible` (404), `NotPermitted` (which right, who grants it), the ledger's `DecisionRefused`
(its facts say no, or somebody was first) and `ledger.transactions.Busy`.
"""

from __future__ import annotations

from collections.abc import Callable

from ledger import lifecycle
from ledger.lifecycle import Decided
from ledger.models import Attempt, User
from ledger.policies import rule_in_force, rule_of
from ledger.rules.canonical import MalformedJson, canonical_bytes, read_json
from ledger.rules.vocabulary import Effect
from ledger.transactions import durable
from review.door import Entry, NotPermitted, administrators, enter_to_write, missing_right, require_decider
from review.duties import conflicts


class ArgumentsUnreadable(ValueError):
    """The typed arguments are not JSON the ledger can store; `typed` is given back as it was."""

    def __init__(self, detail: str, *, typed: str) -> None:
        super().__init__(f"These arguments cannot be read: {detail}.")
        self.detail = detail
        self.typed = typed


def approve(
    user: User, item_id: str, *, why: str, new_provider_key: bool = False, shown_digest: str | None = None
) -> Decided:
    """Add this person's yes to one new send of exactly what was shown."""

    def decide() -> Decided:
        require_approver(user, enter_to_write(user, item_id))
        return lifecycle.approve(
            item_id=item_id, by=user, why=why, new_provider_key=new_provider_key, shown_digest=shown_digest
        )

    return durable(decide)


def reject(
    user: User,
    item_id: str,
    *,
    why: str,
    what: str | None = None,
    reference: str = "",
    look_up_id: int | None = None,
) -> Decided:
    """Close to sending for ever. `what` is needed once it was sent: happened, did_not or not_known."""
    return as_decider(
        user,
        item_id,
        lambda: lifecycle.reject(
            item_id=item_id, by=user, why=why, what=what, reference=reference, look_up_id=look_up_id
        ),
    )


def confirm_happened(
    user: User, item_id: str, *, why: str, reference: str = "", look_up_id: int | None = None
) -> Decided:
    """The effect exists. It rests on at least one of: the note `why`, the provider's reference, a look-up."""
    return as_decider(
        user,
        item_id,
        lambda: lifecycle.confirm_happened(
            item_id=item_id, by=user, why=why, reference=reference, look_up_id=look_up_id
        ),
    )


def confirm_did_not_happen(
    user: User, item_id: str, *, why: str, reference: str = "", look_up_id: int | None = None
) -> Decided:
    """The effect does not exist and nothing is to be sent again; it rests on what the other one does."""
    return as_decider(
        user,
        item_id,
        lambda: lifecycle.confirm_did_not_happen(
            item_id=item_id, by=user, why=why, reference=reference, look_up_id=look_up_id
        ),
    )


def recheck(user: User, item_id: str, *, why: str) -> Decided:
    """Ask the provider once more."""
    return as_decider(user, item_id, lambda: lifecycle.recheck(item_id=item_id, by=user, why=why))


def relink_arguments(user: User, item_id: str, *, why: str, typed: str) -> Decided:
    """Open a held attempt with the arguments as typed. Raises `ArgumentsUnreadable`."""

    def decide() -> Decided:
        entry = enter_to_write(user, item_id)
        require_decider(entry.tenant, entry.rights)
        args = read_typed(typed)
        return lifecycle.relink_arguments(
            item_id=item_id, by=user, why=why, args_bytes=canonical_bytes(args), args=args
        )

    return durable(decide)


def relink_record(user: User, item_id: str, *, why: str, reference: str) -> Decided:
    """Name the provider's record this may have become; it is looked up at once."""
    return as_decider(
        user,
        item_id,
        lambda: lifecycle.relink_record(item_id=item_id, by=user, why=why, reference=reference),
    )


def relink_operation(user: User, item_id: str, *, why: str, target_key: str, new: bool = False) -> Decided:
    """Name the operation this belongs to; `new`: one that does not exist yet, for what was never sent."""
    return as_decider(
        user,
        item_id,
        lambda: lifecycle.relink_operation(item_id=item_id, by=user, why=why, target_key=target_key, new=new),
    )


def intended_repeat(user: User, item_id: str, *, why: str) -> Decided:
    """A suspected duplicate that was meant; it still needs its approval."""
    return as_decider(user, item_id, lambda: lifecycle.intended_repeat(item_id=item_id, by=user, why=why))


def decide_conflict(user: User, item_id: str, *, why: str, answer: str, reference: str = "") -> Decided:
    """Answer a contradiction of a final state: happened, duplicate or stands."""
    return as_decider(
        user,
        item_id,
        lambda: lifecycle.decide_conflict(
            item_id=item_id, by=user, why=why, answer=answer, reference=reference
        ),
    )


def require_approver(user: User, entry: Entry) -> None:
    """Raise `NotPermitted` unless this person may approve this attempt: right, scope, separate duties."""
    require_decider(entry.tenant, entry.rights)
    attempt = entry.item.attempt
    if not entry.rights.may_approve(attempt.tool, effect_now(attempt)):
        raise missing_right(entry.tenant, "approve_sends")
    conflict = conflicts(attempt, now=entry.now).get(user.pk)
    if conflict is not None:
        raise NotPermitted(
            f"{conflict} Somebody else has to approve it.", granted_by=administrators(entry.tenant)
        )


def effect_now(attempt: Attempt) -> Effect:
    """The effect by the rule in force; by the attempt's own rule where the policy refuses the tool."""
    rule = rule_in_force(attempt.tenant_id, attempt.tool).rule or rule_of(attempt)
    return rule.effect


def as_decider(user: User, item_id: str, verb: Callable[[], Decided]) -> Decided:
    """Call a verb of the ledger that takes the right to decide work, both in one transaction."""

    def decide() -> Decided:
        entry = enter_to_write(user, item_id)
        require_decider(entry.tenant, entry.rights)
        return verb()

    return durable(decide)


def read_typed(typed: str) -> dict[str, object]:
    """Arguments as a person typed them. Raises `ArgumentsUnreadable`."""
    try:
        return read_json(typed.encode("utf-8", "surrogatepass"))
    except MalformedJson as error:
        raise ArgumentsUnreadable(error.detail, typed=typed) from None
