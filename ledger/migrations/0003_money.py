"""Budgets of money: exact amounts of any unit.

One rewrite for each table. A lock that is not had within two seconds ends the migration instead of keeping
everybody else waiting behind it; it is then run again. Code that expects whole numbers reads and writes on.
"""

from decimal import Decimal

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

import ledger.models.run

TO_NUMERIC = """
    SET LOCAL lock_timeout = '2s';
    ALTER TABLE ledger_budgetaccount
        ALTER COLUMN "limit" TYPE numeric, ALTER COLUMN reserved TYPE numeric, ALTER COLUMN spent TYPE numeric,
        ALTER COLUMN unit TYPE varchar(32);
    ALTER TABLE ledger_budgetentry
        ALTER COLUMN reserved_change TYPE numeric, ALTER COLUMN spent_change TYPE numeric;
"""
TO_BIGINT = """
    ALTER TABLE ledger_budgetaccount
        ALTER COLUMN "limit" TYPE bigint, ALTER COLUMN reserved TYPE bigint, ALTER COLUMN spent TYPE bigint,
        ALTER COLUMN unit TYPE varchar(16);
    ALTER TABLE ledger_budgetentry
        ALTER COLUMN reserved_change TYPE bigint, ALTER COLUMN spent_change TYPE bigint;
"""


def amount(**options):
    return ledger.models.run.ExactAmount(max_digits=100, decimal_places=8, **options)


def fixed_columns():
    return pgtrigger.compiler.Trigger(
        name="fixed_columns",
        sql=pgtrigger.compiler.UpsertTriggerSql(
            condition="WHEN (OLD.tenant_id IS DISTINCT FROM NEW.tenant_id OR OLD.run_id IS DISTINCT FROM NEW.run_id OR OLD.unit IS DISTINCT FROM NEW.unit OR OLD.limit IS DISTINCT FROM NEW.limit)",
            func="IF NOT (FALSE) THEN RAISE EXCEPTION 'fixed_columns: these columns never change' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;",
            hash="b473395a1336c4c0a1045ab04658d7124709628c",
            operation="UPDATE",
            pgid="pgtrigger_fixed_columns_04872",
            table="ledger_budgetaccount",
            when="BEFORE",
        ),
    )


class Migration(migrations.Migration):
    dependencies = [("ledger", "0002_tenant_wall")]

    operations = [
        # No column of a trigger's condition changes its type; the trigger is away inside this transaction only.
        pgtrigger.migrations.RemoveTrigger(model_name="budgetaccount", name="fixed_columns"),
        migrations.RunSQL(
            sql=TO_NUMERIC,
            reverse_sql=TO_BIGINT,
            state_operations=[
                migrations.AlterField("budgetaccount", "limit", amount(null=True)),
                migrations.AlterField("budgetaccount", "reserved", amount(default=Decimal(0))),
                migrations.AlterField("budgetaccount", "spent", amount(default=Decimal(0))),
                migrations.AlterField("budgetaccount", "unit", models.CharField(max_length=32)),
                migrations.AlterField("budgetentry", "reserved_change", amount()),
                migrations.AlterField("budgetentry", "spent_change", amount()),
            ],
        ),
        pgtrigger.migrations.AddTrigger(model_name="budgetaccount", trigger=fixed_columns()),
        migrations.AddConstraint(
            model_name="budgetaccount",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("unit__in", ["tool_calls", "turns", "tokens"]),
                    ("unit__regex", r"^[A-Z][A-Z0-9_.-]{0,31}$"),
                    _connector="OR",
                ),
                name="unit_in_one_spelling",
            ),
        ),
    ]
