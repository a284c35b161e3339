"""The record of fsck's runs, and in each event the transaction that wrote it.

Events that are there already name none, so that no row is written anew.
"""

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

import ledger.models.base

ROLLBACK = "ALTER TABLE ledger_event DROP COLUMN written_in"


class Migration(migrations.Migration):
    dependencies = [("ledger", "0004_parked_facts")]

    operations = [
        migrations.CreateModel(
            name="FsckRun",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "form",
                    models.CharField(choices=[("whole", "Whole"), ("touched", "Touched")], max_length=8),
                ),
                ("started_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField()),
                ("operations", models.PositiveBigIntegerField(null=True)),
                ("invariants", models.PositiveIntegerField()),
                ("findings_count", models.PositiveBigIntegerField()),
                ("findings", models.JSONField(default=list)),
                ("counts", models.JSONField(default=dict)),
                ("slowest", models.JSONField(default=dict)),
                ("snapshot", models.TextField()),
                ("system", models.CharField(max_length=24)),
            ],
        ),
        migrations.SeparateDatabaseAndState(
            # A column with this default at once would write the whole table anew. What is there already keeps
            # none: no run before this one asks for it.
            database_operations=[
                migrations.RunSQL("ALTER TABLE ledger_event ADD COLUMN written_in xid8", ROLLBACK),
                migrations.RunSQL(
                    "ALTER TABLE ledger_event ALTER COLUMN written_in SET DEFAULT pg_current_xact_id()",
                    migrations.RunSQL.noop,
                ),
            ],
            state_operations=[
                migrations.AddField(
                    model_name="event",
                    name="written_in",
                    field=ledger.models.base.TransactionIdField(
                        db_default=models.Func(function="pg_current_xact_id"), editable=False, null=True
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="fsckrun",
            index=models.Index(
                models.F("form"),
                models.OrderBy(models.F("started_at"), descending=True),
                name="fsck_runs_by_age",
            ),
        ),
        migrations.AddIndex(
            model_name="fsckrun",
            index=models.Index(
                models.OrderBy(models.F("started_at"), descending=True),
                condition=models.Q(("findings_count", 0)),
                name="clean_fsck_runs",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="fsckrun",
            trigger=pgtrigger.compiler.Trigger(
                name="never_changed",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;",
                    hash="22e87603db28768862458a292db40633b23a8221",
                    operation="UPDATE",
                    pgid="pgtrigger_never_changed_6cd78",
                    table="ledger_fsckrun",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="fsckrun",
            trigger=pgtrigger.compiler.Trigger(
                name="kept_a_while",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="IF NOT (OLD.started_at < clock_timestamp() - interval '7 days') THEN RAISE EXCEPTION 'this row is too young to be deleted' USING ERRCODE = 'check_violation'; END IF; RETURN OLD;",
                    hash="cd298c54cca35af820ccbb9451712594dd7416a8",
                    operation="DELETE",
                    pgid="pgtrigger_kept_a_while_b3387",
                    table="ledger_fsckrun",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="fsckrun",
            trigger=pgtrigger.compiler.Trigger(
                name="never_truncated",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="IF NOT (COALESCE(current_setting('ledger.allow_truncate', TRUE), '') = 'on') THEN RAISE EXCEPTION 'this table is never truncated' USING ERRCODE = 'check_violation'; END IF; RETURN NULL;",
                    hash="730e6fc06fb6d49b8fb1cf5e6cdbf5bff4cdd625",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_never_truncated_3f714",
                    table="ledger_fsckrun",
                    when="BEFORE",
                ),
            ),
        ),
    ]
