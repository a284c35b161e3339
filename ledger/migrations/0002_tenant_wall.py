"""Foreign keys over (tenant_id, id): nothing can point across the wall of a tenant."""

from django.db import migrations

REFERENCES = (
    ("ledger_apikey", "agent_id", "ledger_agent"),
    ("ledger_budgetaccount", "run_id", "ledger_run"),
    ("ledger_budgetentry", "account_id", "ledger_budgetaccount"),
    ("ledger_budgetentry", "attempt_id", "ledger_attempt"),
    ("ledger_runcheckpoint", "run_id", "ledger_run"),
    ("ledger_operation", "agent_id", "ledger_agent"),
    ("ledger_operation", "run_id", "ledger_run"),
    ("ledger_attempt", "operation_id", "ledger_operation"),
    ("ledger_attempt", "descends_from_id", "ledger_attempt"),
    ("ledger_attempt", "agent_id", "ledger_agent"),
    ("ledger_attempt", "policy_id", "ledger_policysnapshot"),
    ("ledger_attempt", "relinked_to_id", "ledger_operation"),
    ("ledger_lookup", "attempt_id", "ledger_attempt"),
    ("ledger_lookup", "provider_id", "ledger_provider"),
    ("ledger_event", "operation_id", "ledger_operation"),
    ("ledger_event", "attempt_id", "ledger_attempt"),
    ("ledger_refusal", "agent_id", "ledger_agent"),
    ("ledger_settlement", "operation_id", "ledger_operation"),
    ("ledger_settlement", "attempt_id", "ledger_attempt"),
    ("ledger_settlement", "event_id", "ledger_event"),
    ("ledger_delivery", "operation_id", "ledger_operation"),
    ("ledger_delivery", "settlement_id", "ledger_settlement"),
    ("ledger_delivery", "destination_id", "ledger_destination"),
    ("ledger_reviewitem", "operation_id", "ledger_operation"),
    ("ledger_reviewitem", "attempt_id", "ledger_attempt"),
    ("ledger_reviewitem", "owner_group_id", "ledger_reviewgroup"),
    ("ledger_decision", "item_id", "ledger_reviewitem"),
    ("ledger_decision", "attempt_id", "ledger_attempt"),
    ("ledger_approval", "operation_id", "ledger_operation"),
    ("ledger_approval", "attempt_id", "ledger_attempt"),
    ("ledger_vote", "decision_id", "ledger_decision"),
    ("ledger_vote", "attempt_id", "ledger_attempt"),
    ("ledger_vote", "approval_id", "ledger_approval"),
    ("ledger_vote", "policy_id", "ledger_policysnapshot"),
    ("ledger_approvaluse", "approval_id", "ledger_approval"),
    ("ledger_approvaluse", "attempt_id", "ledger_attempt"),
)
TARGETS = sorted({target for _, _, target in REFERENCES})


def _wall_name(table: str, column: str) -> str:
    return f"wall_{table.removeprefix('ledger_')}_{column}"


UNIQUE = [
    (
        f"ALTER TABLE {table} ADD CONSTRAINT {table}_within_tenant UNIQUE (tenant_id, id)",
        f"ALTER TABLE {table} DROP CONSTRAINT {table}_within_tenant",
    )
    for table in TARGETS
]
WALL = [
    (
        (
            f"ALTER TABLE {table} ADD CONSTRAINT {_wall_name(table, column)} FOREIGN KEY (tenant_id, {column}) "
            f"REFERENCES {target} (tenant_id, id) DEFERRABLE INITIALLY IMMEDIATE"
        ),
        f"ALTER TABLE {table} DROP CONSTRAINT {_wall_name(table, column)}",
    )
    for table, column, target in REFERENCES
]


class Migration(migrations.Migration):
    dependencies = [("ledger", "0001_first")]

    operations = [
        migrations.RunSQL(sql=[forward], reverse_sql=[backward]) for forward, backward in (*UNIQUE, *WALL)
    ]
