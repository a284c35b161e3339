"""When an item is to be escalated, and when and why it was. New rows of an older ledger, and those that are
there, get a time at which they are looked at once; no row is rewritten for that."""

from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [("ledger", "0012_statements")]

    operations = [
        migrations.AddField(
            model_name="reviewitem",
            name="escalate_at",
            field=models.DateTimeField(db_default=Now(), null=True),
        ),
        migrations.AddField(
            model_name="reviewitem",
            name="escalated_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="reviewitem",
            name="escalated_for",
            field=models.CharField(
                blank=True,
                choices=[("key_window_closing", "key_window_closing"), ("overdue", "overdue")],
                db_default="",
                max_length=20,
            ),
        ),
    ]
