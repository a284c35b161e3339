import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

WALL = migrations.RunSQL(
    sql=[
        "ALTER TABLE ledger_accesschange ADD CONSTRAINT wall_accesschange_agent_id FOREIGN KEY (tenant_id, agent_id) REFERENCES ledger_agent (tenant_id, id) DEFERRABLE INITIALLY IMMEDIATE",
    ],
    reverse_sql=["ALTER TABLE ledger_accesschange DROP CONSTRAINT wall_accesschange_agent_id"],
)


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0014_escalation_index"),
    ]

    operations = [
        migrations.CreateModel(
            name="AccessChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("role_given", "role_given"),
                            ("role_taken", "role_taken"),
                            ("scope_given", "scope_given"),
                            ("scope_taken", "scope_taken"),
                            ("switched_off", "switched_off"),
                            ("switched_on", "switched_on"),
                            ("agent_created", "agent_created"),
                            ("agent_given", "agent_given"),
                            ("key_created", "key_created"),
                            ("key_rotated", "key_rotated"),
                            ("key_revoked", "key_revoked"),
                            ("policy_published", "policy_published"),
                        ],
                        max_length=32,
                    ),
                ),
                ("data", models.JSONField(default=dict)),
                ("why", models.CharField(blank=True, default="", max_length=4000)),
                ("at", models.DateTimeField()),
                (
                    "agent",
                    models.ForeignKey(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="ledger.agent",
                    ),
                ),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
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
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="ledger.tenant"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        models.F("tenant"),
                        models.OrderBy(models.F("at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        name="access_changes_by_age",
                    ),
                    models.Index(
                        models.F("tenant"),
                        models.F("person"),
                        models.OrderBy(models.F("at"), descending=True),
                        name="access_changes_of_person",
                    ),
                ],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="accesschange",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="dd82ff1e3669e94ca9e17ace44ab8d73130b9571",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_5b84d",
                    table="ledger_accesschange",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="accesschange",
            trigger=pgtrigger.compiler.Trigger(
                name="never_truncated",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="IF NOT (COALESCE(current_setting('ledger.allow_truncate', TRUE), '') = 'on') THEN RAISE EXCEPTION 'this table is never truncated' USING ERRCODE = 'check_violation'; END IF; RETURN NULL;",
                    hash="15a63699182b61643bdb1e3adf7d865cb3aa050f",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_never_truncated_057ad",
                    table="ledger_accesschange",
                    when="BEFORE",
                ),
            ),
        ),
        WALL,
    ]
