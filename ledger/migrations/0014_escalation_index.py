"""Which items are to be escalated by a time; built beside the work that goes on."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("ledger", "0013_escalation")]

    operations = [
        AddIndexConcurrently(
            model_name="reviewitem",
            index=models.Index(
                models.F("escalate_at"),
                condition=Q(closed_at__isnull=True, escalate_at__isnull=False),
                name="items_to_escalate",
            ),
        ),
    ]
