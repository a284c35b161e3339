"""`manage.py create_operator`: a person with a role on a tenant, or one more role for one who exists."""

from __future__ import annotations

import secrets
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError

from ledger.access import note_access
from ledger.management.command import Answer, Exit, LedgerCommand, Stopped, tenant_named
from ledger.models import Tenant, User
from ledger.rules.vocabulary import AccessChangeKind
from ledger.transactions import durable
from review.rights import hold_rights, rights_of
from review.roles import Role, grant_role, roles_of

_PASSWORD_BYTES = 15


class Command(LedgerCommand):
    help = "Create a person with a role on a tenant. Repeated, it adds the role and changes nothing else."

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--role", required=True, choices=[role.value for role in Role])
        parser.add_argument("--email", default="")
        parser.add_argument("--password", help="made up and shown once where it is left out")

    def answer(self, *, username: str, role: str, **options: Any) -> Answer:
        tenant = tenant_named(options["tenant"])
        given: str | None = options["password"]
        password = given or secrets.token_urlsafe(_PASSWORD_BYTES)

        def work() -> bool:
            user, created = _person(username, options["email"], password, given=given is not None)
            _give(user, tenant, Role(role))
            return created

        created = durable(work)
        return _told(username, tenant, role, created=created, made_up=None if given else password)


def _give(user: User, tenant: Tenant, role: Role) -> None:
    """Given again it changes nothing, and the record says nothing."""
    hold_rights(tenant, to_change=True)
    is_new = role not in roles_of(rights_of(user, tenant))
    grant_role(user, tenant, role)
    if is_new:
        kind = AccessChangeKind.ROLE_GIVEN
        note_access(kind, tenant_id=tenant.pk, by=None, person=user, roles=[role.value])


def _told(username: str, tenant: Tenant, role: str, *, created: bool, made_up: str | None) -> Answer:
    password = made_up if created else None
    text = f"{'Created' if created else 'Kept'} {username}: {role} in {tenant.slug}."
    if password:
        text += f"\nPassword, shown this once: {password}"
    data = {
        "username": username,
        "tenant": tenant.slug,
        "role": role,
        "created": created,
        "password": password,
    }
    return Answer(text, data)


def _person(username: str, email: str, password: str, *, given: bool) -> tuple[User, bool]:
    """The person of this user name, and whether they are new."""
    user = User.objects.select_for_update().filter(username=username).first()
    if user is None:
        return _new_person(username, email, password, check_strength=given), True
    _check_same(user, email, password if given else None)
    return user, False


def _new_person(username: str, email: str, password: str, *, check_strength: bool) -> User:
    user = User(username=username, email=email)
    user.set_password(password)
    try:
        user.full_clean()
    except ValidationError as error:
        raise Stopped(Exit.USAGE, f"No such person can be made: {' '.join(error.messages)}") from error
    if check_strength:
        _check_strength(password)
    user.save()
    return user


def _check_strength(password: str) -> None:
    try:
        validate_password(password)
    except ValidationError as error:
        raise Stopped(
            Exit.REFUSED, f"The password is refused: {' '.join(error.messages)}", mend="Choose another."
        ) from error


def _check_same(user: User, email: str, password: str | None) -> None:
    """Whoever exists keeps their address and password; other ones are not slipped in."""
    if not user.is_active:
        raise Stopped(Exit.CONFLICT, f"{user.username} exists and is inactive; nothing was changed.")
    if email and email != user.email:
        raise Stopped(Exit.CONFLICT, f"{user.username} exists with another e-mail; nothing was changed.")
    if password is not None and not user.check_password(password):
        raise Stopped(Exit.CONFLICT, f"{user.username} exists with another password; nothing was changed.")
