import django.db.models.functions.datetime
from django.db import migrations, models

import media.models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("feedsite", "0001_functions"),
    ]

    operations = [
        migrations.CreateModel(
            name="FileMove",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(db_index=True, max_length=64)),
                (
                    "to",
                    models.CharField(
                        blank=True, db_index=True, help_text="The new name; empty: they go.", max_length=64
                    ),
                ),
                ("ext", models.CharField(max_length=8)),
                ("small_ext", models.CharField(blank=True, max_length=8)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="MediaFile",
            fields=[
                (
                    "id",
                    models.BigIntegerField(
                        db_default=media.models.MediaId(),
                        editable=False,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("owner_id", models.BigIntegerField(verbose_name="owner")),
                (
                    "use",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "not used"),
                            ("item", "post"),
                            ("avatar", "avatar"),
                            ("banner", "banner"),
                            ("cover", "cover"),
                        ],
                        db_default="",
                        default="",
                        max_length=8,
                        verbose_name="use",
                    ),
                ),
                ("item_id", models.BigIntegerField(blank=True, null=True, verbose_name="post")),
                (
                    "session_id",
                    models.BigIntegerField(
                        blank=True,
                        help_text="The live session it's the cover of.",
                        null=True,
                        verbose_name="live session",
                    ),
                ),
                ("position", models.SmallIntegerField(db_default=0, default=0)),
                (
                    "kind",
                    models.CharField(
                        choices=[("image", "picture"), ("video", "video")], max_length=8, verbose_name="kind"
                    ),
                ),
                ("name", models.CharField(max_length=64, unique=True)),
                ("ext", models.CharField(max_length=8)),
                ("small_ext", models.CharField(blank=True, max_length=8)),
                (
                    "captions",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The end of the name of a video's captions.",
                        max_length=8,
                    ),
                ),
                ("width", models.IntegerField(verbose_name="width")),
                ("height", models.IntegerField(verbose_name="height")),
                ("small_width", models.IntegerField(default=0)),
                ("small_height", models.IntegerField(default=0)),
                ("size", models.BigIntegerField(verbose_name="bytes")),
                ("duration", models.FloatField(blank=True, null=True, verbose_name="seconds")),
                ("blurhash", models.CharField(blank=True, max_length=128)),
                ("focus_x", models.FloatField(default=0)),
                ("focus_y", models.FloatField(default=0)),
                ("description", models.CharField(blank=True, max_length=1500, verbose_name="description")),
                (
                    "sha256",
                    models.CharField(help_text="Hash of the uploaded file.", max_length=64, verbose_name="SHA-256"),
                ),
                ("phash", models.BigIntegerField(help_text="The perceptual hash of a picture.", null=True)),
                (
                    "key",
                    models.CharField(
                        blank=True, help_text="The client's name for the call, for a day.", max_length=255
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="uploaded"),
                ),
                ("withdrawn_at", models.DateTimeField(blank=True, null=True, verbose_name="withdrawn")),
                (
                    "hidden_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="Hidden by moderators. Nobody can open its files.",
                        null=True,
                        verbose_name="hidden",
                    ),
                ),
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
    ]
