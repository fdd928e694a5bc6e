"""Indexes by which expired tokens and codes of apps are found; django-oauth-toolkit's tables have none."""

from django.db import migrations

ENDS = {"app_token_end": "oauth2_provider_accesstoken", "app_code_end": "oauth2_provider_grant"}


class Migration(migrations.Migration):
    # One that an interrupted build has left is dropped first.
    atomic = False

    dependencies = [("oauth2_provider", "0022_refreshtoken_token_family_index")]

    operations = [
        migrations.RunSQL(
            [
                f"DROP INDEX CONCURRENTLY IF EXISTS {name}",
                f"CREATE INDEX CONCURRENTLY {name} ON {table} (expires)",
            ],
            f"DROP INDEX CONCURRENTLY IF EXISTS {name}",
        )
        for name, table in ENDS.items()
    ]
