"""What can be done with a person's access: each button with what it does now, or why it cannot be pressed."""

from __future__ import annotations

from ledger.models import Tenant, User
from review.absences import away_in, why_not_away
from review.access import why_not_give
from review.accounts import why_no_link
from review.door import right_needed
from review.queries.delivery_values import PressView
from review.rights import Rights, stored_rights
from review.roles import roles_of


def presses_of(
    user: User, person: User, tenant: Tenant, rights: Rights, *, items: int, votes: int
) -> tuple[PressView, ...]:
    """Roles, scopes, the account. `items` and `votes`: what would end with the right to decide."""
    no_right = "" if rights.administer else right_needed(tenant, "administer")
    stored = stored_rights(person, tenant)
    no_giving = no_right or why_not_give(user, person)
    name, ends = person.get_username(), _ends(items, votes)
    return (
        PressView("give-role", "Give a role", f"{name} may do more from the next question on.", no_giving),
        PressView(
            "take-role",
            "Take a role",
            f"Takes effect at the next question. Without the right to decide, {ends}",
            no_right or ("" if roles_of(stored) else f"{name} has no role in {tenant.name}."),
        ),
        PressView(
            "give-scope",
            "Let them approve",
            f"{name} may approve new sends of the tools and effects you name.",
            no_giving or ("" if stored.decide else f"{name} does not decide work: make them operator first."),
        ),
        PressView(
            "take-scope",
            "Take a scope",
            "Takes effect at the next question: votes that no other scope covers are void.",
            no_right or ("" if stored.scopes else f"{name} approves nothing in {tenant.name}."),
        ),
        PressView(
            "new-link",
            "Make a link to set a password",
            f"Shows a link once, which you hand to {name} yourself: nothing is mailed. When it is used, the "
            f"password before and every session of theirs end.",
            no_right or why_no_link(user, person),
        ),
        _absence(person, tenant, no_right, items),
        _switch(person, no_right, ends),
    )


def _absence(person: User, tenant: Tenant, no_right: str, items: int) -> PressView:
    name = person.get_username()
    if person.pk in away_in(tenant):
        return PressView("back", "Mark as back", f"Rules give {name} work again.", no_right)
    says = (
        f"Until then no rule gives {name} anything. Open items of theirs ({items}) stay theirs: assign to "
        f"others what cannot wait."
    )
    return PressView("away", "Mark as away", says, no_right or why_not_away(person, tenant))


def _switch(person: User, no_right: str, ends: str) -> PressView:
    name = person.get_username()
    if person.is_active:
        says = f"{name} signs in nowhere any more, agents of theirs get no leave, {ends}"
        return PressView("switch-off", "Switch off", says, no_right)
    says = f"{name} signs in again with the rights they had; claims and votes that ended stay ended."
    return PressView("switch-on", "Switch on", says, no_right)


def _ends(items: int, votes: int) -> str:
    return (
        f"open items of theirs ({items}) go to the group, claims and plans of redelivery end, and votes "
        f"({votes}) are void."
    )
