"""Names of models and fields for people; nothing in the database changes."""

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

import accounts.models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0008_most_followed"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="deletion",
            options={"verbose_name": "deletion of an account", "verbose_name_plural": "deletions of accounts"},
        ),
        migrations.AlterModelOptions(
            name="user",
            options={"verbose_name": "user", "verbose_name_plural": "users"},
        ),
        migrations.AlterField(
            model_name="deletion",
            name="attempts",
            field=models.IntegerField(default=0, verbose_name="attempts"),
        ),
        migrations.AlterField(
            model_name="deletion",
            name="created_at",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="asked at"),
        ),
        migrations.AlterField(
            model_name="deletion",
            name="tried_at",
            field=models.DateTimeField(
                help_text="When a worker last took it, or did a part of it.", null=True, verbose_name="last tried"
            ),
        ),
        migrations.AlterField(
            model_name="deletion",
            name="user",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE,
                primary_key=True,
                related_name="+",
                serialize=False,
                to=settings.AUTH_USER_MODEL,
                verbose_name="user",
            ),
        ),
        migrations.AlterField(
            model_name="user",
            name="bio",
            field=models.CharField(blank=True, max_length=500, verbose_name="about them"),
        ),
        migrations.AlterField(
            model_name="user",
            name="date_joined",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="joined"),
        ),
        migrations.AlterField(
            model_name="user",
            name="deleted_at",
            field=models.DateTimeField(blank=True, editable=False, null=True, verbose_name="deleted"),
        ),
        migrations.AlterField(
            model_name="user",
            name="display_name",
            field=models.CharField(blank=True, max_length=50, verbose_name="display name"),
        ),
        migrations.AlterField(
            model_name="user",
            name="email",
            field=models.EmailField(blank=True, max_length=254, verbose_name="e-mail"),
        ),
        migrations.AlterField(
            model_name="user",
            name="follower_count",
            field=models.IntegerField(default=0, editable=False, verbose_name="followers"),
        ),
        migrations.AlterField(
            model_name="user",
            name="following_count",
            field=models.IntegerField(default=0, editable=False, verbose_name="following"),
        ),
        migrations.AlterField(
            model_name="user",
            name="is_active",
            field=models.BooleanField(default=True, verbose_name="active"),
        ),
        migrations.AlterField(
            model_name="user",
            name="is_staff",
            field=models.BooleanField(default=False, verbose_name="staff"),
        ),
        migrations.AlterField(
            model_name="user",
            name="language",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Of settings.LANGUAGES; empty: the browser's.",
                max_length=10,
                verbose_name="language",
            ),
        ),
        migrations.AlterField(
            model_name="user",
            name="last_seen_at",
            field=models.DateTimeField(blank=True, null=True, verbose_name="last seen"),
        ),
        migrations.AlterField(
            model_name="user",
            name="level",
            field=models.SmallIntegerField(
                choices=[(0, "dormant"), (1, "within a month"), (2, "within a week"), (3, "within a day")],
                default=0,
                verbose_name="level",
            ),
        ),
        migrations.AlterField(
            model_name="user",
            name="time_zone",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="An IANA name; empty: the browser's.",
                max_length=64,
                verbose_name="time zone",
            ),
        ),
        migrations.AlterField(
            model_name="user",
            name="username",
            field=models.CharField(
                error_messages={"unique": "A user with that name exists."},
                max_length=30,
                unique=True,
                validators=[
                    django.core.validators.RegexValidator(
                        "^[A-Za-z0-9_-]{1,30}\\Z",
                        "1 to 30 letters, digits, hyphens or underscores (ASCII).",
                        code="invalid",
                    ),
                    accounts.models.not_reserved,
                ],
                verbose_name="username",
            ),
        ),
    ]
