"""Tables that refer to those of django-oauth-toolkit and allauth, which refer to the users."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_tables"),
        ("account", "0009_emailaddress_unique_primary_email"),
        ("oauth2_provider", "0022_refreshtoken_token_family_index"),
    ]

    operations = [
        migrations.CreateModel(
            name="AddressCheck",
            fields=[
                (
                    "address",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="check_of",
                        serialize=False,
                        to="account.emailaddress",
                    ),
                ),
                ("key_digest", models.CharField(max_length=64)),
                ("code_digest", models.CharField(max_length=64)),
                ("tries", models.SmallIntegerField(db_default=0, default=0)),
                ("expires_at", models.DateTimeField(db_index=True)),
            ],
            options={
                "default_permissions": (),
            },
        ),
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
        migrations.CreateModel(
            name="AppToken",
            fields=[],
            options={
                "verbose_name": "token",
                "verbose_name_plural": "tokens",
                "proxy": True,
                "default_permissions": ("view", "delete"),
                "indexes": [],
                "constraints": [],
            },
            bases=("oauth2_provider.accesstoken",),
        ),
    ]
