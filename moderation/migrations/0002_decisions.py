import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.contrib.auth.management import create_permissions
from django.db import migrations, models

MODERATORS = ["view_appeal", *(f"{verb}_replytemplate" for verb in ("view", "add", "change", "delete"))]


def allow_moderators(apps, schema_editor):
    """Django creates permissions only after all migrations."""
    config = apps.get_app_config("moderation")
    config.models_module = True
    create_permissions(config, apps=apps, verbosity=0, using=schema_editor.connection.alias)
    config.models_module = None
    new = apps.get_model("auth", "Permission").objects.filter(
        content_type__app_label="moderation", codename__in=MODERATORS
    )
    for group in apps.get_model("auth", "Group").objects.filter(name="Moderators"):
        group.permissions.add(*new)


class Migration(migrations.Migration):
    dependencies = [
        ("about", "0001_squashed"),
        ("items", "0003_uncounted"),
        ("moderation", "0001_squashed"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="decision",
            name="is_told",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="decision",
            name="rule",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                to="about.rule",
            ),
        ),
        migrations.AddField(
            model_name="decision",
            name="text",
            field=models.CharField(db_default="", default="", max_length=500),
        ),
        migrations.AddField(
            model_name="decision",
            name="until",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="senderrule",
            name="until",
            field=models.DateTimeField(null=True),
        ),
        migrations.CreateModel(
            name="Appeal",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("text", models.CharField(max_length=2000)),
                ("state", models.CharField(db_default="waiting", default="waiting", max_length=8)),
                ("answer", models.CharField(db_default="", default="", max_length=500)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("answered_at", models.DateTimeField(null=True)),
                (
                    "answered_by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "decision",
                    models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, to="moderation.decision"),
                ),
            ],
            options={
                "verbose_name": "appeal",
                "verbose_name_plural": "appeals",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(condition=models.Q(("state", "waiting")), fields=["id"], name="appeal_queue"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ReplyTemplate",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("title", models.CharField(max_length=100, unique=True)),
                ("text", models.CharField(max_length=500)),
            ],
            options={
                "verbose_name": "reply template",
                "verbose_name_plural": "reply templates",
                "ordering": ["title"],
            },
        ),
        migrations.RunPython(allow_moderators, migrations.RunPython.noop),
    ]
