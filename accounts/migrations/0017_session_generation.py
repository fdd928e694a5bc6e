from django.db import migrations, models

# A session that has expired ends by itself, for copies of it name their end: that clears thousands of rows at once.
SQL = """
ALTER TABLE django_session ADD COLUMN user_id bigint;

CREATE FUNCTION accounts_session_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE accounts_user SET session_generation = feedsite_draw()
    WHERE id IN (SELECT user_id FROM before WHERE expire_date > now());
    RETURN NULL;
END $$;
CREATE TRIGGER accounts_session_changed AFTER UPDATE ON django_session
    REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION accounts_session_changed();
CREATE TRIGGER accounts_session_ended AFTER DELETE ON django_session
    REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION accounts_session_changed();
"""
BACK_SQL = """
DROP TRIGGER accounts_session_ended ON django_session;
DROP TRIGGER accounts_session_changed ON django_session;
DROP FUNCTION accounts_session_changed();
ALTER TABLE django_session DROP COLUMN user_id;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0016_policy_words"),
        ("sessions", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="user",
            name="session_generation",
            field=models.BigIntegerField(db_default=0, default=0, editable=False),
        ),
        migrations.RunSQL(SQL, BACK_SQL),
        migrations.CreateModel(
            name="Session",
            fields=[
                (
                    "session_key",
                    models.CharField(max_length=40, primary_key=True, serialize=False, verbose_name="session key"),
                ),
                ("session_data", models.TextField(verbose_name="session data")),
                ("expire_date", models.DateTimeField(db_index=True, verbose_name="expire date")),
                ("user_id", models.BigIntegerField(null=True)),
            ],
            options={
                "verbose_name": "session",
                "verbose_name_plural": "sessions",
                "db_table": "django_session",
                "default_permissions": (),
                "abstract": False,
                "managed": False,
            },
        ),
    ]
