"""Names for what is done to accounts, and to agents as a whole. The database keeps them as text: no lock."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0015_access_changes"),
    ]

    operations = [
        migrations.AlterField(
            model_name="accesschange",
            name="kind",
            field=models.CharField(
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
                    ("account_made", "account_made"),
                    ("link_made", "link_made"),
                    ("password_set", "password_set"),
                    ("agent_switched_off", "agent_switched_off"),
                    ("agent_switched_on", "agent_switched_on"),
                ],
                max_length=32,
            ),
        ),
    ]
