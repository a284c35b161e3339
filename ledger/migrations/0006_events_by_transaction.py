"""Which operations were written to since a moment; built beside the work that goes on."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("ledger", "0005_fsck_runs")]

    operations = [
        AddIndexConcurrently(
            model_name="event", index=models.Index(models.F("written_in"), name="events_by_transaction")
        ),
    ]
