"""API tokens move to django-oauth-toolkit's table. Those of knox end: their hashes are of another kind."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0031_unused_invitations"),
        ("oauth2_provider", "0022_refreshtoken_token_family_index"),
    ]

    operations = [
        migrations.RunSQL("DROP TABLE IF EXISTS accounts_tokenorigin, knox_authtoken", migrations.RunSQL.noop),
        migrations.CreateModel(
            name="TokenOrigin",
            fields=[
                (
                    "token",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="origin",
                        serialize=False,
                        to="oauth2_provider.accesstoken",
                    ),
                ),
                ("user_agent", models.CharField(blank=True, max_length=200)),
                ("ip", models.CharField(blank=True, max_length=45)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.AlterModelOptions(
            name="apptoken",
            options={
                "default_permissions": ("view", "delete"),
                "verbose_name": "token",
                "verbose_name_plural": "tokens",
            },
        ),
    ]
