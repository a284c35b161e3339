"""Snoozes, what an item waits on, and whether a person chose its owner.

The old code inserts items without the new columns: the database fills them in.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0010_delivery_indexes"),
    ]

    operations = [
        migrations.AddField(
            model_name="reviewitem",
            name="owner_chosen",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="reviewitem",
            name="snoozed_until",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="reviewitem",
            name="waiting_on",
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
        migrations.AddField(
            model_name="reviewitem",
            name="waiting_on_url",
            field=models.CharField(blank=True, db_default="", default="", max_length=2000),
        ),
    ]
