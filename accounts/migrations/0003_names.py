import django.contrib.postgres.indexes
from django.db import migrations, models

# The names by which people find a user, without regard to case and width.
NAME = """
    CREATE FUNCTION feedsite_name(username text, display_name text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN lower(normalize(username || ' ' || display_name, NFKC));
"""
# All stretches of two and three letters, with the space before the name, and every single letter that is not ASCII: two
# letters of a Chinese name are found as well as three of a Latin one. pg_trgm is not in every PostgreSQL,
# and knows stretches of three only.
GRAMS = """
    CREATE FUNCTION feedsite_grams(name text) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (
        SELECT coalesce(array_agg(DISTINCT substr(' ' || name, place, size)), '{}')
        FROM generate_series(1, length(name) + 1) AS place, generate_series(1, 3) AS size
        WHERE place + size <= length(name) + 2 AND (size > 1 OR ascii(substr(' ' || name, place, 1)) > 127)
    );
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_language_and_time_zone"),
    ]

    operations = [
        migrations.RunSQL(NAME, "DROP FUNCTION feedsite_name"),
        migrations.RunSQL(GRAMS, "DROP FUNCTION feedsite_grams"),
        migrations.AddIndex(
            model_name="user",
            index=django.contrib.postgres.indexes.GinIndex(
                models.Func(
                    models.Func("username", "display_name", function="feedsite_name"), function="feedsite_grams"
                ),
                name="user_names",
            ),
        ),
    ]
