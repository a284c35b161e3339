"""Accounts, and the links with which their people set a password that nobody else knows.

An administrator makes an account with a role, or a new link for somebody who has forgotten their password,
and hands the link over: nothing is mailed. A link is shown once, ends after a day, works once, and ends where
a newer one is made or its maker no longer administers everything its person has rights in.

Each verb of an administrator raises `NotVisible`, `NotPermitted` and `AccessRefused`.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from django.contrib.auth.hashers import make_password
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.validators import ASCIIUsernameValidator
from django.core.exceptions import ValidationError
from django.db import IntegrityError

from ledger.access import note_access
from ledger.models import Tenant, User
from ledger.rules.names import name_problem
from ledger.rules.vocabulary import AccessChangeKind
from ledger.transactions import database_clock, durable
from review.access import AccessRefused, as_administrator, person_in
from review.answers import Refused
from review.models import PasswordLink
from review.people import administers_all_of, tenants_with
from review.rights import hold_rights, may_administer
from review.roles import Role, grant_role

LINK_LASTS = timedelta(days=1)
LONGEST_USERNAME = 150
RESERVED = frozenset({"me", "none"})
"""What a search for an owner means by these is nobody of that name."""
_CODE_BYTES = 32


@dataclass(frozen=True)
class NewLink:
    """A link as it was made. Nobody can show its code again."""

    person_id: int
    code: str
    expires_at: datetime


class LinkOver(Exception):
    """No such link can be used: it never was, was used or replaced, or has ended; it does not say which."""


class PasswordRefused(Refused):
    """Too weak a password, and all that makes it so."""

    def __init__(self, messages: list[str]) -> None:
        super().__init__(" ".join(messages), field="password")


def make_account(by: User, slug: str, *, username: str, display_name: str, role: Role, why: str) -> NewLink:
    """A new account with its first role here, and the link for its person."""
    _check("username", _username_problem(username))
    _check("display_name", name_problem(display_name))

    def work(tenant: Tenant) -> NewLink:
        if User.objects.filter(username__iexact=username).exists():
            raise _taken(username)
        person = User(username=username, first_name=display_name)
        person.set_unusable_password()
        person.save()
        grant_role(person, tenant, role)
        code, link = _new_link(by, tenant, person)
        _note(AccessChangeKind.ACCOUNT_MADE, link, tenant, why, roles=[role.value], name=display_name)
        return NewLink(person.pk, code, link.expires_at)

    try:
        return as_administrator(by, slug, work)
    except IntegrityError:
        raise _taken(username) from None


def make_link(by: User, slug: str, person_id: int, *, why: str) -> NewLink:
    """A new link for somebody who has an account. Their password stays good until the link is used."""

    def work(tenant: Tenant) -> NewLink:
        person = person_in(tenant, person_id)
        problem = why_no_link(by, person)
        if problem:
            raise AccessRefused(problem)
        code, link = _new_link(by, tenant, person)
        _note(AccessChangeKind.LINK_MADE, link, tenant, why)
        return NewLink(person.pk, code, link.expires_at)

    return as_administrator(by, slug, work)


def why_no_link(by: User, person: User) -> str:
    """Why this administrator cannot make this person a link; empty where they can."""
    name = person.get_username()
    if person.pk == by.pk:
        return "Nobody makes a link for themselves: another administrator has to."
    if not person.is_active:
        return f"{name} is switched off."
    if not administers_all_of(by, person):
        return (
            f"{name} has rights where you do not administer: whoever sets their password could act there. It "
            f"takes an administrator of every tenant of theirs, or manage.py changepassword at the machine."
        )
    return ""


def open_link_of(person: User) -> PasswordLink | None:
    """The link that this person could use now."""
    link = PasswordLink.objects.select_related("person", "tenant", "made_by").filter(person=person).first()
    return link if link is not None and _stands(link) else None


def set_password(code: str, password: str) -> User:
    """Use the link up: from now on this is the password of its person, and every session of theirs ends.

    Raises `LinkOver` and `PasswordRefused`; then the link is as good as before.
    """
    person = _link(code).person
    hashed = _stored_form(password, person)

    def use() -> User:
        hold_rights(*{_link(code).tenant, *tenants_with(person)})
        link = _link(code)
        if not PasswordLink.objects.filter(pk=link.pk, code_hash=_hashed(code)).delete()[0]:
            raise LinkOver
        User.objects.filter(pk=link.person_id).update(password=hashed)
        kind, made_by = AccessChangeKind.PASSWORD_SET, link.made_by.get_username()
        note_access(kind, tenant_id=link.tenant_id, by=link.person, person=link.person, link_made_by=made_by)
        return link.person

    return durable(use)


def change_password(person: User, password: str) -> None:
    """Somebody who has just shown that they know their password takes another one: every other session of
    theirs ends, and a link that was made for them is over.

    Raises `PasswordRefused`; and `AccessRefused` where the password of `person`, as it was read, is theirs no
    more.
    """
    hashed = _stored_form(password, person)

    def change() -> None:
        tenants = tenants_with(person)
        hold_rights(*tenants)
        same = User.objects.filter(pk=person.pk, password=person.password, is_active=True)
        if not same.update(password=hashed):
            raise AccessRefused("Your password was changed elsewhere meanwhile. Sign in anew.")
        PasswordLink.objects.filter(person=person).delete()
        for tenant in tenants:
            note_access(AccessChangeKind.PASSWORD_SET, tenant_id=tenant.pk, by=person, person=person)

    durable(change)


def _stored_form(password: str, person: User) -> str:
    """Slow on purpose: outside of transactions. Raises `PasswordRefused`."""
    try:
        validate_password(password, person)
    except ValidationError as error:
        raise PasswordRefused(error.messages) from error
    return make_password(password)


def _new_link(by: User, tenant: Tenant, person: User) -> tuple[str, PasswordLink]:
    code, now = secrets.token_urlsafe(_CODE_BYTES), database_clock()
    made = {"tenant": tenant, "made_by": by, "made_at": now, "expires_at": now + LINK_LASTS}
    link, _ = PasswordLink.objects.update_or_create(
        person=person, defaults={**made, "code_hash": _hashed(code)}
    )
    return code, link


def _note(kind: AccessChangeKind, link: PasswordLink, tenant: Tenant, why: str, **said: Any) -> None:
    note_access(
        kind,
        tenant_id=tenant.pk,
        by=link.made_by,
        why=why,
        person=link.person,
        link_ends_at=link.expires_at.isoformat(),
        **said,
    )


def _link(code: str) -> PasswordLink:
    related = PasswordLink.objects.select_related("person", "tenant", "made_by")
    link = related.filter(code_hash=_hashed(code)).first()
    if link is None or not _stands(link):
        raise LinkOver
    return link


def _stands(link: PasswordLink) -> bool:
    """Asked as if it were made now: an administrator who loses the right leaves no way in behind."""
    in_time = database_clock() < link.expires_at
    by_right = may_administer(link.made_by, link.tenant) and administers_all_of(link.made_by, link.person)
    return in_time and link.person.is_active and by_right


def _hashed(code: str) -> str:
    return sha256(code.encode()).hexdigest()


def _username_problem(username: str) -> str | None:
    try:
        ASCIIUsernameValidator()(username)
    except ValidationError:
        return "a user name has unaccented letters, digits and @ . + - _"
    if username.lower() in RESERVED:
        return f"nobody can be called {username}: in a search it means something else"
    return None if len(username) <= LONGEST_USERNAME else f"at most {LONGEST_USERNAME} characters"


def _check(field: str, problem: str | None) -> None:
    if problem:
        raise AccessRefused(f"{problem[:1].upper()}{problem[1:]}.", field=field)


def _taken(username: str) -> AccessRefused:
    return AccessRefused(f"The user name {username} is taken: choose another.", field="username")
