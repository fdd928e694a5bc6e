import django.db.models.functions.datetime
from django.db import migrations, models

import media.models


class Migration(migrations.Migration):
    replaces = [
        ("media", "0001_tables"),
        ("media", "0002_private"),
        ("media", "0003_link_cards"),
        ("media", "0004_scheduled_posts"),
        ("media", "0005_owner_rename"),
    ]

    initial = True

    dependencies = [("feedsite", "0001_squashed")]

    operations = [
        migrations.CreateModel(
            name="FileMove",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("name", models.CharField(db_index=True, max_length=64)),
                ("to", models.CharField(db_index=True, max_length=64)),
                ("ext", models.CharField(max_length=8)),
                ("small_ext", models.CharField(max_length=8)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="MediaFile",
            fields=[
                ("id", models.BigIntegerField(db_default=media.models.MediaId(), primary_key=True, serialize=False)),
                ("owner_id", models.BigIntegerField()),
                ("use", models.CharField(db_default="", default="", max_length=8)),
                ("item_id", models.BigIntegerField(null=True)),
                ("session_id", models.BigIntegerField(null=True)),
                ("position", models.SmallIntegerField(db_default=0, default=0)),
                ("kind", models.CharField(max_length=8)),
                ("name", models.CharField(max_length=64, unique=True)),
                ("ext", models.CharField(max_length=8)),
                ("small_ext", models.CharField(max_length=8)),
                ("captions", models.CharField(db_default="", default="", max_length=8)),
                ("width", models.IntegerField()),
                ("height", models.IntegerField()),
                ("small_width", models.IntegerField(default=0)),
                ("small_height", models.IntegerField(default=0)),
                ("size", models.BigIntegerField()),
                ("duration", models.FloatField(null=True)),
                ("blurhash", models.CharField(max_length=128)),
                ("focus_x", models.FloatField(default=0)),
                ("focus_y", models.FloatField(default=0)),
                ("description", models.CharField(max_length=1500)),
                ("sha256", models.CharField(max_length=64)),
                ("phash", models.BigIntegerField(null=True)),
                ("key", models.CharField(max_length=255)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("withdrawn_at", models.DateTimeField(null=True)),
                ("hidden_at", models.DateTimeField(null=True)),
                ("is_private", models.BooleanField(db_default=False, default=False)),
            ],
            options={
                "verbose_name": "picture or video",
                "verbose_name_plural": "pictures and videos",
                "indexes": [
                    models.Index(fields=["owner_id", "-id"], name="media_owner"),
                    models.Index(
                        condition=models.Q(("item_id__isnull", False)),
                        fields=["item_id", "position"],
                        name="media_item",
                    ),
                    models.Index(
                        condition=models.Q(("session_id__isnull", False)), fields=["session_id"], name="media_session"
                    ),
                    models.Index(fields=["sha256", "-id"], name="media_digest"),
                    models.Index(condition=models.Q(("use", "")), fields=["created_at"], name="media_unused"),
                    models.Index(
                        condition=models.Q(("key", ""), _negated=True), fields=["created_at"], name="media_keyed"
                    ),
                    models.Index(
                        condition=models.Q(("withdrawn_at__isnull", False)),
                        fields=["withdrawn_at"],
                        name="media_withdrawn",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("key", ""), _negated=True), fields=("owner_id", "key"), name="media_key"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="OwnerRename",
            fields=[
                ("attempts", models.SmallIntegerField(default=0)),
                ("tried_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("finished_at", models.DateTimeField(null=True)),
                ("owner_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("last_id", models.BigIntegerField(default=0)),
            ],
            options={
                "default_permissions": (),
            },
        ),
    ]
