"""When a look-up was asked for, and whether it is an *absent* that is believed: columns added without rewriting
the table. What was stored before says neither, so it proves nothing."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ledger", "0016_accounts_and_switches")]

    operations = [
        migrations.AddField(
            model_name="lookup",
            name="believed_absent",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="lookup",
            name="asked_at",
            field=models.DateTimeField(null=True),
        ),
    ]
