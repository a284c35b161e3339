"""Which answers of look-ups are an *absent* that is believed: a column added without rewriting the table. Of
what was stored before nobody asked, so it proves nothing."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ledger", "0016_accounts_and_switches")]

    operations = [
        migrations.AddField(
            model_name="lookup",
            name="believed_absent",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
