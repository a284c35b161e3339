"""What a big table gets without being locked for long: indexes built beside the writers, constraints that
hold for new rows at once and are checked for old ones afterwards, and the wall around the new references."""

from django.contrib.postgres.operations import (
    AddConstraintNotValid,
    AddIndexConcurrently,
    ValidateConstraint,
)
from django.db import migrations, models
from django.db.models import F, Q

NEW_TARGETS = ("ledger_delivery", "ledger_redeliveryplan")
REFERENCES = (
    ("ledger_delivery", "owner_group_id", "ledger_reviewgroup"),
    ("ledger_deliverytry", "delivery_id", "ledger_delivery"),
    ("ledger_deliveryack", "delivery_id", "ledger_delivery"),
    ("ledger_deliveryack", "key_id", "ledger_apikey"),
    ("ledger_destinationsecret", "destination_id", "ledger_destination"),
    ("ledger_destinationchange", "destination_id", "ledger_destination"),
    ("ledger_plannedredelivery", "plan_id", "ledger_redeliveryplan"),
    ("ledger_plannedredelivery", "delivery_id", "ledger_delivery"),
)


def _unique(table):
    name = f"{table}_within_tenant"
    return (
        migrations.RunSQL(
            f"CREATE UNIQUE INDEX CONCURRENTLY {name} ON {table} (tenant_id, id)",
            f"DROP INDEX IF EXISTS {name}",
        ),
        migrations.RunSQL(
            f"ALTER TABLE {table} ADD CONSTRAINT {name} UNIQUE USING INDEX {name}",
            f"ALTER TABLE {table} DROP CONSTRAINT {name}",
        ),
    )


def _wall(table, column, target):
    name = f"wall_{table.removeprefix('ledger_')}_{column}"
    return (
        migrations.RunSQL(
            f"ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY (tenant_id, {column}) "
            f"REFERENCES {target} (tenant_id, id) DEFERRABLE INITIALLY IMMEDIATE NOT VALID",
            f"ALTER TABLE {table} DROP CONSTRAINT {name}",
        ),
        migrations.RunSQL(f"ALTER TABLE {table} VALIDATE CONSTRAINT {name}", migrations.RunSQL.noop),
    )


def _constraint(name, condition):
    return (
        AddConstraintNotValid("delivery", models.CheckConstraint(condition=condition, name=name)),
        ValidateConstraint("delivery", name),
    )


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("ledger", "0009_deliveries")]

    operations = [
        AddIndexConcurrently(
            "delivery",
            models.Index(
                F("destination"),
                F("next_at"),
                condition=Q(next_at__isnull=False),
                name="deliveries_by_destination",
            ),
        ),
        AddIndexConcurrently(
            "delivery",
            models.Index(
                F("destination"), condition=Q(lease_until__isnull=False), name="deliveries_under_way"
            ),
        ),
        AddIndexConcurrently(
            "delivery",
            models.Index(
                F("destination"), F("id"), condition=Q(held_at__isnull=False), name="deliveries_held"
            ),
        ),
        AddIndexConcurrently(
            "delivery",
            models.Index(
                F("tenant"),
                F("destination"),
                F("dead_at"),
                condition=Q(state="DEAD_LETTERED"),
                name="dead_letters",
            ),
        ),
        *_constraint("acked_was_acknowledged", ~Q(state="ACKED") | Q(acked_at__isnull=False)),
        *_constraint(
            "dead_has_reason_and_owner",
            ~Q(state="DEAD_LETTERED")
            | (~Q(dead_reason="") & Q(dead_at__isnull=False) & Q(owner_group__isnull=False)),
        ),
        *(operation for table in NEW_TARGETS for operation in _unique(table)),
        *(operation for reference in REFERENCES for operation in _wall(*reference)),
    ]
