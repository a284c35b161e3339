"""Links to set a password with, who is away until when, and rules of ownership for dead letters. The old code
knows neither of the two tables; where it writes a rule, the database fills in that it is of no destination."""

import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0016_accounts_and_switches"),
        ("review", "0003_press_nonces"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="ownershipentry",
            name="destination_glob",
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
        migrations.CreateModel(
            name="PasswordLink",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("code_hash", models.CharField(max_length=64, unique=True)),
                ("made_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                (
                    "made_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "person",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="ledger.tenant"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Absence",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("until", models.DateTimeField(null=True)),
                ("why", models.CharField(blank=True, max_length=4000)),
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
                    "person",
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
            options={
                "indexes": [
                    models.Index(
                        models.F("tenant"),
                        models.F("person"),
                        models.OrderBy(models.F("id"), descending=True),
                        name="absences_newest_first",
                    )
                ],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="absence",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="4fe9ddfe1a856e1a636710e5716f6640029e5e6a",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_88391",
                    table="review_absence",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="absence",
            trigger=pgtrigger.compiler.Trigger(
                name="never_truncated",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="IF NOT (COALESCE(current_setting('ledger.allow_truncate', TRUE), '') = 'on') THEN RAISE EXCEPTION 'this table is never truncated' USING ERRCODE = 'check_violation'; END IF; RETURN NULL;",
                    hash="120cefaf3c6192e9723e286df59d7711089f992e",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_never_truncated_edf3e",
                    table="review_absence",
                    when="BEFORE",
                ),
            ),
        ),
    ]
