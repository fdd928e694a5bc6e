import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [("items", "0001_squashed"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name="PopularItem",
            fields=[
                (
                    "item",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        serialize=False,
                        to="items.item",
                    ),
                ),
                ("popularity", models.FloatField()),
            ],
        ),
        migrations.CreateModel(
            name="SearchIndex",
            fields=[
                ("name", models.CharField(max_length=200, primary_key=True, serialize=False)),
                ("position", models.BigIntegerField()),
                ("version", models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="ItemChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "item",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="items.item",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="WordRarity",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("word", models.TextField()),
                ("rarity", models.FloatField()),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("word",), include=("rarity",), name="word_rarity")],
            },
        ),
        migrations.CreateModel(
            name="IssuedPage",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("request_id", models.CharField(max_length=64, null=True)),
                ("item_ids", django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None)),
                (
                    "reasons",
                    django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=200), size=None),
                ),
                ("has_more", models.BooleanField()),
                ("issued_at", models.DateTimeField()),
                ("is_recorded", models.BooleanField(default=False)),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["user", "issued_at"], name="issued_to"),
                    models.Index(fields=["issued_at"], name="issued_at"),
                    models.Index(condition=models.Q(("is_recorded", False)), fields=["id"], name="issued_unrecorded"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("request_id__isnull", False)),
                        fields=("user", "request_id"),
                        name="issued_request",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="NotInterested",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "item",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="items.item",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["user", "-id"], name="not_interested_latest")],
                "constraints": [models.UniqueConstraint(fields=("user", "item"), name="not_interested_once")],
            },
        ),
    ]
