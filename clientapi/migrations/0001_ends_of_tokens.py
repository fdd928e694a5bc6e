"""Indexes by which expired tokens and codes of apps are found; django-oauth-toolkit's tables have none."""

from django.db import migrations

INDEXES = """
CREATE INDEX IF NOT EXISTS app_token_end ON oauth2_provider_accesstoken (expires);
CREATE INDEX IF NOT EXISTS app_code_end ON oauth2_provider_grant (expires);
"""
NONE = "DROP INDEX IF EXISTS app_token_end; DROP INDEX IF EXISTS app_code_end;"


class Migration(migrations.Migration):
    # The tables were made just now, and are empty.
    dependencies = [("oauth2_provider", "0022_refreshtoken_token_family_index")]

    operations = [migrations.RunSQL(INDEXES, NONE)]
