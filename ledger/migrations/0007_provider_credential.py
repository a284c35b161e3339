"""Which credential a provider refuses, and since when: two columns, added without rewriting the table."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ledger", "0006_events_by_transaction")]

    operations = [
        migrations.AddField(
            model_name="provider",
            name="refused_credential",
            field=models.CharField(blank=True, db_default="", default="", max_length=100),
        ),
        migrations.AddField(
            model_name="provider",
            name="credential_refused_since",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
