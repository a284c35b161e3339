"""What people say became of something sent: a table of its own, behind the wall of its tenant."""

import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

DECISIONS = (
    "approve",
    "reject",
    "confirm_happened",
    "confirm_did_not_happen",
    "relink_arguments",
    "relink_record",
    "relink_operation",
    "intended_repeat",
    "recheck",
    "conflict_happened",
    "conflict_duplicate",
    "conflict_stands",
    "assign",
    "claim",
    "release",
    "take_over",
    "hand_over",
    "snooze",
    "wake",
    "wait_on",
    "note",
)
REFERENCES = (
    ("decision_id", "ledger_decision"),
    ("attempt_id", "ledger_attempt"),
    ("look_up_id", "ledger_lookup"),
    ("contradicted_by_id", "ledger_event"),
)
LOOK_UPS = "ledger_lookup_within_tenant"


def _wall(column, target):
    name = f"wall_statement_{column}"
    return migrations.RunSQL(
        f"ALTER TABLE ledger_statement ADD CONSTRAINT {name} FOREIGN KEY (tenant_id, {column}) "
        f"REFERENCES {target} (tenant_id, id) DEFERRABLE INITIALLY IMMEDIATE",
        f"ALTER TABLE ledger_statement DROP CONSTRAINT {name}",
    )


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("ledger", "0011_ownership"),
    ]

    operations = [
        migrations.RunSQL(
            f"CREATE UNIQUE INDEX CONCURRENTLY {LOOK_UPS} ON ledger_lookup (tenant_id, id)",
            f"DROP INDEX IF EXISTS {LOOK_UPS}",
        ),
        migrations.RunSQL(
            f"ALTER TABLE ledger_lookup ADD CONSTRAINT {LOOK_UPS} UNIQUE USING INDEX {LOOK_UPS}",
            f"ALTER TABLE ledger_lookup DROP CONSTRAINT {LOOK_UPS}",
        ),
        migrations.CreateModel(
            name="Statement",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "says",
                    models.CharField(
                        choices=[("happened", "happened"), ("did_not", "did_not")], max_length=16
                    ),
                ),
                ("reference", models.CharField(blank=True, max_length=255)),
                ("at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "ended_how",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("settled", "settled"),
                            ("said otherwise since", "said otherwise since"),
                            ("may no longer decide", "may no longer decide"),
                            ("contradicted by what became of it", "contradicted by what became of it"),
                            ("answered in another way", "answered in another way"),
                        ],
                        max_length=40,
                    ),
                ),
                ("contradicted_at", models.DateTimeField(null=True)),
                (
                    "attempt",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="statements",
                        to="ledger.attempt",
                    ),
                ),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "contradicted_by",
                    models.ForeignKey(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="ledger.event",
                    ),
                ),
                (
                    "decision",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="statement",
                        to="ledger.decision",
                    ),
                ),
                (
                    "look_up",
                    models.ForeignKey(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="ledger.lookup",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="ledger.tenant"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        models.F("by"),
                        models.F("attempt"),
                        condition=models.Q(("contradicted_at__isnull", False)),
                        name="contradicted",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        models.F("attempt"),
                        models.F("by"),
                        condition=models.Q(("ended_at__isnull", True)),
                        name="one_statement_per_person",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at__isnull", True), ("ended_how", "")),
                            models.Q(("ended_at__isnull", False), models.Q(("ended_how", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="statement_ended_somehow",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("contradicted_at__isnull", True), ("contradicted_by__isnull", True)),
                            models.Q(("contradicted_at__isnull", False), ("contradicted_by__isnull", False)),
                            _connector="OR",
                        ),
                        name="contradicted_by_an_event",
                    ),
                ],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="statement",
            trigger=pgtrigger.compiler.Trigger(
                name="fixed_columns",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (OLD.tenant_id IS DISTINCT FROM NEW.tenant_id OR OLD.decision_id IS DISTINCT FROM NEW.decision_id OR OLD.attempt_id IS DISTINCT FROM NEW.attempt_id OR OLD.by_id IS DISTINCT FROM NEW.by_id OR OLD.says IS DISTINCT FROM NEW.says OR OLD.reference IS DISTINCT FROM NEW.reference OR OLD.look_up_id IS DISTINCT FROM NEW.look_up_id OR OLD.at IS DISTINCT FROM NEW.at)",
                    func="IF NOT (FALSE) THEN RAISE EXCEPTION 'fixed_columns: these columns never change' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;",
                    hash="b59556a1afcfefc7208c98ed2f99946d99df7834",
                    operation="UPDATE",
                    pgid="pgtrigger_fixed_columns_bf33e",
                    table="ledger_statement",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="statement",
            trigger=pgtrigger.compiler.Trigger(
                name="set_once",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN ((OLD.ended_at IS NOT NULL AND OLD.ended_at IS DISTINCT FROM NEW.ended_at) OR (OLD.contradicted_at IS NOT NULL AND OLD.contradicted_at IS DISTINCT FROM NEW.contradicted_at))",
                    func="IF NOT (FALSE) THEN RAISE EXCEPTION 'these columns are set once' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;",
                    hash="b8be9e5633e2ec1781c5def8eae04ea10feb399c",
                    operation="UPDATE",
                    pgid="pgtrigger_set_once_94136",
                    table="ledger_statement",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="statement",
            trigger=pgtrigger.compiler.Trigger(
                name="never_deleted",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;",
                    hash="48236b4f89d3992123d10c27d82949768672908f",
                    operation="DELETE",
                    pgid="pgtrigger_never_deleted_e6856",
                    table="ledger_statement",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="statement",
            trigger=pgtrigger.compiler.Trigger(
                name="never_truncated",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="IF NOT (COALESCE(current_setting('ledger.allow_truncate', TRUE), '') = 'on') THEN RAISE EXCEPTION 'this table is never truncated' USING ERRCODE = 'check_violation'; END IF; RETURN NULL;",
                    hash="af308b3c3c28b1c6c31139ee23a9c7288fdb5899",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_never_truncated_9777e",
                    table="ledger_statement",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AlterField(
            model_name="decision",
            name="kind",
            field=models.CharField(choices=[(kind, kind) for kind in DECISIONS], max_length=32),
        ),
        *(_wall(*reference) for reference in REFERENCES),
    ]
