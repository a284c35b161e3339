"""The rules of ownership, what was done to teams, and the wall around both."""

import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

EFFECTS = ("read", "message", "payment", "deletion", "deployment", "write")
REASONS = (
    "unknown",
    "no_lookup",
    "adapter_failing",
    "unresolved",
    "several_matches",
    "hash_mismatch",
    "reversed",
    "conflicting_evidence",
    "not_idempotent",
    "key_window_over",
    "authority_refused",
    "attempts_used_up",
    "approval_required",
    "approval_expired",
    "arguments_changed",
    "policy_changed",
    "suspected_duplicate",
    "sent_without_leave",
)

REFERENCES = (
    ("review_ownershipentry", "version_id", "review_ownershipversion"),
    ("review_ownershipentry", "team_id", "ledger_reviewgroup"),
    ("review_teamchange", "team_id", "ledger_reviewgroup"),
)


def _wall(table, column, target):
    name = f"wall_{table}_{column}"
    return migrations.RunSQL(
        f"ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY (tenant_id, {column}) "
        f"REFERENCES {target} (tenant_id, id) DEFERRABLE INITIALLY IMMEDIATE",
        f"ALTER TABLE {table} DROP CONSTRAINT {name}",
    )


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0011_ownership"),
        ("review", "0001_first"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="OwnershipVersion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("version", models.PositiveIntegerField()),
                ("saved_at", models.DateTimeField()),
                ("why", models.CharField(max_length=4000)),
                (
                    "reach",
                    models.CharField(
                        choices=[("new", "new"), ("unowned", "unowned"), ("all", "all")],
                        max_length=8,
                    ),
                ),
                (
                    "saved_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="ledger.tenant"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="OwnershipEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("place", models.PositiveSmallIntegerField()),
                ("tool_glob", models.CharField(max_length=200)),
                (
                    "reason",
                    models.CharField(
                        blank=True, choices=[(reason, reason) for reason in REASONS], max_length=32
                    ),
                ),
                (
                    "effect",
                    models.CharField(
                        blank=True, choices=[(effect, effect) for effect in EFFECTS], max_length=16
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="ledger.reviewgroup",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="ledger.tenant"
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entries",
                        to="review.ownershipversion",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="TeamChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("what", models.CharField(max_length=300)),
                ("at", models.DateTimeField()),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="changes",
                        to="ledger.reviewgroup",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="ledger.tenant"
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="ownershipversion",
            constraint=models.UniqueConstraint(
                models.F("tenant"), models.F("version"), name="ownership_version"
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="ownershipversion",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="d990ac5d35f7f4e21cde533b8d25173681f323ca",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_427ed",
                    table="review_ownershipversion",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="ownershipversion",
            trigger=pgtrigger.compiler.Trigger(
                name="never_truncated",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="IF NOT (COALESCE(current_setting('ledger.allow_truncate', TRUE), '') = 'on') THEN RAISE EXCEPTION 'this table is never truncated' USING ERRCODE = 'check_violation'; END IF; RETURN NULL;",
                    hash="34828d04f4776e7ba11faa84b3b07c0f6ed9a375",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_never_truncated_9168b",
                    table="review_ownershipversion",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="ownershipentry",
            constraint=models.UniqueConstraint(
                models.F("version"), models.F("place"), name="ownership_place"
            ),
        ),
        migrations.AddConstraint(
            model_name="ownershipentry",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("person__isnull", False), ("team__isnull", True)),
                    models.Q(("person__isnull", True), ("team__isnull", False)),
                    _connector="OR",
                ),
                name="ownership_names_team_or_person",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="ownershipentry",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="7633a2a188de0f75a347242b1224295eb4fde528",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_3fcad",
                    table="review_ownershipentry",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="ownershipentry",
            trigger=pgtrigger.compiler.Trigger(
                name="never_truncated",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="IF NOT (COALESCE(current_setting('ledger.allow_truncate', TRUE), '') = 'on') THEN RAISE EXCEPTION 'this table is never truncated' USING ERRCODE = 'check_violation'; END IF; RETURN NULL;",
                    hash="1efad6911ac0bca66c5ded7ef19cee3be5649a1b",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_never_truncated_ec990",
                    table="review_ownershipentry",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="teamchange",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="6973be318ca7bfb98f0fd93c23056fb764248c86",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_5a99e",
                    table="review_teamchange",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="teamchange",
            trigger=pgtrigger.compiler.Trigger(
                name="never_truncated",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="IF NOT (COALESCE(current_setting('ledger.allow_truncate', TRUE), '') = 'on') THEN RAISE EXCEPTION 'this table is never truncated' USING ERRCODE = 'check_violation'; END IF; RETURN NULL;",
                    hash="990b22e4202784238a938e8da04fcfb29922ad52",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_never_truncated_7f227",
                    table="review_teamchange",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.RunSQL(
            "ALTER TABLE review_ownershipversion "
            "ADD CONSTRAINT review_ownershipversion_within_tenant UNIQUE (tenant_id, id)",
            "ALTER TABLE review_ownershipversion DROP CONSTRAINT review_ownershipversion_within_tenant",
        ),
        *(_wall(*reference) for reference in REFERENCES),
    ]
