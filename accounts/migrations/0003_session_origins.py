from django.db import migrations, models

# New rows are checked first, so that the version before leaves none that would fail.
ENDS_WITH_ITS_SESSION = [
    """
    ALTER TABLE usersessions_usersession DROP CONSTRAINT IF EXISTS origin_of_session,
        ADD CONSTRAINT origin_of_session FOREIGN KEY (session_key) REFERENCES django_session ON DELETE CASCADE NOT VALID
    """,
    """
    DELETE FROM usersessions_usersession o
    WHERE NOT EXISTS (SELECT FROM django_session s WHERE s.session_key = o.session_key)
    """,
    "ALTER TABLE usersessions_usersession VALIDATE CONSTRAINT origin_of_session",
]


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("accounts", "0002_squashed")]

    operations = [
        migrations.AlterField("SessionOrigin", "data", models.JSONField(default=dict, db_default={})),
        migrations.RunSQL(ENDS_WITH_ITS_SESSION),
    ]
