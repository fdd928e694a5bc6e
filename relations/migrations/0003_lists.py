"""Lists of followees, and the rule that their members are followed."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

# A follow that goes takes its places in lists along, whatever takes it: a verb, a purge, the admin, the version before.
# NOT VALID, then valid: the table is new and empty, and the followed table is locked for no reading.
FOLLOWED = """
ALTER TABLE relations_listmember ADD CONSTRAINT list_member_followed FOREIGN KEY (owner_id, member_id)
    REFERENCES relations_follow (follower_id, followee_id) ON DELETE CASCADE NOT VALID;
ALTER TABLE relations_listmember VALIDATE CONSTRAINT list_member_followed;
"""
NOT_FOLLOWED = "ALTER TABLE relations_listmember DROP CONSTRAINT list_member_followed;"


class Migration(migrations.Migration):
    dependencies = [
        ("relations", "0002_labels"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="List",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("title", models.CharField(max_length=100, verbose_name="title")),
                ("is_exclusive", models.BooleanField(db_default=False, default=False, verbose_name="out of home")),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="since"),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="lists",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "list",
                "verbose_name_plural": "lists",
            },
        ),
        migrations.CreateModel(
            name="ListMember",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "list",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="members",
                        to="relations.list",
                    ),
                ),
                (
                    "member",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="list",
            index=models.Index(fields=["owner", "-id"], name="list_page"),
        ),
        migrations.AddIndex(
            model_name="listmember",
            index=models.Index(fields=["owner", "member"], name="list_member_of_follow"),
        ),
        migrations.AddIndex(
            model_name="listmember",
            index=models.Index(fields=["list", "-id"], name="list_member_page"),
        ),
        migrations.AddConstraint(
            model_name="listmember",
            constraint=models.UniqueConstraint(fields=("list", "member"), name="list_member_pair"),
        ),
        migrations.RunSQL(FOLLOWED, NOT_FOLLOWED),
    ]
