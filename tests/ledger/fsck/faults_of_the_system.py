"""Faults around the operations: in the wall, people and their permissions, the database itself, pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from ledger.models import Pulse, Vote, triggers
from ledger.queries.invariants import system, tenancy
from ledger.queries.invariants.scope import options_of
from review.queries.invariants import page_counts_are_query_counts
from review.queries.values import Tab
from tests.ledger.fsck.fault import Fault, without

_VOTES_STAY = triggers.never_deleted().get_pgid(Vote())


@contextmanager
def _longer_name() -> Iterator[None]:
    """A model changes and nobody makes a migration."""
    name = options_of(Pulse).get_field("name")
    system._changes_without_migration.cache_clear()
    with mock.patch.object(name, "max_length", 41):
        yield
    system._changes_without_migration.cache_clear()


@contextmanager
def _forgetful_tab() -> Iterator[None]:
    """A page counts what it does not list."""
    with mock.patch("review.queries.queue._counts", return_value=dict.fromkeys(Tab, 0)):
        yield


TENANCY = (
    Fault(
        tenancy.references_stay_within_the_tenant,
        "attempt:recorded",
        "UPDATE ledger_attempt SET agent_id = %(other_agent)s WHERE id = %(recorded)s",
    ),
    Fault(
        tenancy.references_stay_within_the_tenant,
        "attempt:recorded",
        "UPDATE ledger_attempt SET relinked_to_id = %(other_operation)s WHERE id = %(recorded)s",
    ),
    Fault(
        tenancy.references_stay_within_the_tenant,
        "attempt:recorded",
        "UPDATE ledger_attempt SET policy_id = 0 WHERE id = %(recorded)s",
    ),
    Fault(
        tenancy.what_has_no_tenant_is_there,
        "ledger_vote:*",
        "UPDATE ledger_vote SET approver_id = 0 "
        "WHERE id = (SELECT min(id) FROM ledger_vote WHERE approval_id = %(approved_sent_approval)s)",
        touched="approved_sent",
    ),
    Fault(
        tenancy.people_and_permissions_are_there,
        "ledger_reviewgroup_members:*",
        "UPDATE ledger_reviewgroup_members SET user_id = 0 "
        "WHERE id = (SELECT min(id) FROM ledger_reviewgroup_members)",
    ),
    Fault(
        tenancy.people_and_permissions_are_there,
        "review_tenantpermission:*",
        "UPDATE review_tenantpermission SET user_id = 0 "
        "WHERE id = (SELECT min(id) FROM review_tenantpermission)",
    ),
    Fault(
        tenancy.permissions_are_of_what_they_are_on,
        "review_tenantpermission:*",
        "UPDATE review_tenantpermission SET permission_id = "
        "(SELECT id FROM auth_permission WHERE codename = 'approve_sends') "
        "WHERE id = (SELECT min(id) FROM review_tenantpermission)",
    ),
    Fault(
        tenancy.permissions_are_of_what_they_are_on,
        "guardian_userobjectpermission:*",
        "INSERT INTO guardian_userobjectpermission (object_pk, content_type_id, permission_id, user_id) "
        "SELECT '1', content_type_id, id, 0 FROM auth_permission WHERE codename = 'administer'",
    ),
    Fault(
        tenancy.rows_agree_on_the_operation,
        "approval:approved_sent",
        "UPDATE ledger_approval SET operation_id = %(operation_recorded)s "
        "WHERE id = %(approved_sent_approval)s",
    ),
)

SYSTEM = (
    Fault(
        system.constraints_are_valid,
        "ledger_attempt.later",
        "ALTER TABLE ledger_attempt ADD CONSTRAINT later CHECK (number > 0) NOT VALID",
    ),
    Fault(system.constraints_are_there, "ledger_attempt one_live_attempt", "DROP INDEX one_live_attempt"),
    Fault(
        system.constraints_are_there,
        "ledger_attempt failed_by_someone",
        without("ledger_attempt", "failed_by_someone"),
    ),
    Fault(
        system.triggers_are_there_and_enabled,
        "ledger_event pgtrigger_append_only_*",
        "ALTER TABLE ledger_event DISABLE TRIGGER USER",
    ),
    Fault(
        system.triggers_are_there_and_enabled,
        "ledger_vote.wall_vote_attempt_id",
        "ALTER TABLE ledger_vote DISABLE TRIGGER ALL",
    ),
    Fault(system.wall_is_complete, "wall_vote_attempt_id", without("ledger_vote", "wall_vote_attempt_id")),
    Fault(
        system.wall_is_complete,
        "wall_vote_attempt_id",
        without("ledger_vote", "wall_vote_attempt_id")
        + "ALTER TABLE ledger_vote ADD CONSTRAINT wall_vote_attempt_id FOREIGN KEY (attempt_id) "
        "REFERENCES ledger_attempt (id)",
    ),
    Fault(
        system.triggers_are_there_and_enabled,
        f"ledger_vote {_VOTES_STAY}",
        f"COMMENT ON TRIGGER {_VOTES_STAY} ON ledger_vote IS 'of other code'",
    ),
    Fault(
        system.migrations_are_those_of_the_code,
        "ledger.0002_tenant_wall",
        "DELETE FROM django_migrations WHERE app = 'ledger' AND name = '0002_tenant_wall'",
    ),
    Fault(
        system.migrations_are_those_of_the_code,
        "review.9999_later",
        "INSERT INTO django_migrations (app, name, applied) VALUES ('review', '9999_later', now())",
    ),
    Fault(system.models_are_those_of_the_migrations, "ledger", code=_longer_name),
)

PAGES = (
    Fault(
        page_counts_are_query_counts,
        "queue of operator",
        "DELETE FROM ledger_attempt WHERE id = %(held)s",
    ),
    Fault(
        page_counts_are_query_counts,
        "queue of viewer",
        code=_forgetful_tab,
    ),
)
