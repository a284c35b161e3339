"""The small cast of people every test of rights plays with."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from ledger.models import Agent, ApiKey, Tenant, User
from review.roles import Role, grant_role
from tests.support import make


@dataclass(frozen=True)
class Cast:
    """People of the tenant `acme`, and those who must not see into it."""

    tenant: Tenant
    other_tenant: Tenant
    owner: User  # of the agent; operator and approver as well, and still in conflict
    viewer: User
    operator: User
    second_operator: User
    approver: User
    second_approver: User
    admin: User
    auditor: User
    stranger: User  # has every role in the other tenant
    superuser: User  # of no tenant
    inactive: User  # has every role, and is switched off
    agent: Agent
    key: ApiKey

    @property
    def blind(self) -> tuple[User, ...]:
        """Who must not even learn that something exists."""
        return (self.stranger, self.superuser, self.inactive)

    @property
    def not_deciding(self) -> tuple[User, ...]:
        """Who sees and may not decide."""
        return (self.viewer, self.admin, self.auditor)


def cast() -> Cast:
    """Everybody, with a policy published by the administrator and an agent with a key."""
    acme, globex = make.tenant("acme"), make.tenant("globex")
    admin = person("admin", acme, Role.ADMIN)
    owner = person("owner", acme, Role.APPROVER)
    stranger = person("stranger", globex, *Role)
    make.policy(acme, by=admin)
    make.policy(globex, by=stranger)
    bot = make.agent(acme, owner)
    return Cast(
        tenant=acme,
        other_tenant=globex,
        owner=owner,
        viewer=person("viewer", acme, Role.VIEWER),
        operator=person("operator", acme, Role.OPERATOR),
        second_operator=person("second-operator", acme, Role.OPERATOR),
        approver=person("approver", acme, Role.APPROVER),
        second_approver=person("second-approver", acme, Role.APPROVER),
        admin=admin,
        auditor=person("auditor", acme, Role.AUDITOR),
        stranger=stranger,
        superuser=User.objects.create(
            username="superuser", password=quick_password("superuser"), is_superuser=True, is_staff=True
        ),
        inactive=_inactive(acme),
        agent=bot,
        key=make.key(bot),
    )


def person(username: str, tenant: Tenant, *roles: Role) -> User:
    """Somebody with these roles there; the password is `<username>-secret`."""
    user = User.objects.create(username=username, password=quick_password(username))
    for role in roles:
        grant_role(user, tenant, role)
    return user


def quick_password(username: str) -> str:
    """The stored form of `<username>-secret`, cheap to make and to check: tests make hundreds of people."""
    return PBKDF2PasswordHasher().encode(f"{username}-secret", "salt", iterations=1)


def _inactive(tenant: Tenant) -> User:
    user = person("inactive", tenant, *Role)
    user.is_active = False
    user.save(update_fields=["is_active"])
    return user
