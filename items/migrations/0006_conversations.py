import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("items", "0005_quotes_of_an_item"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name="Correspondent",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "writer_id", "reader_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "reader",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "writer",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Participant",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "conversation_id", "user_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "conversation",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="participants",
                        to="items.item",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "last",
                    models.BigIntegerField(
                        help_text="The newest message that lists the conversation; null: none.", null=True
                    ),
                ),
                ("read", models.BigIntegerField(help_text="The newest message that the person has seen; 0: none.")),
                (
                    "is_request",
                    models.BooleanField(help_text="Whether it is listed apart, because only strangers write in it."),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("last__isnull", False)),
                        fields=["user", "is_request", "-last"],
                        name="participant_list",
                    ),
                    models.Index(fields=["user"], name="participant_user"),
                ]
            },
        ),
        migrations.AddField(
            model_name="item",
            name="conversation",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="messages",
                to="items.item",
            ),
        ),
        migrations.AlterField(
            model_name="item",
            name="visibility",
            field=models.CharField(
                choices=[
                    ("public", "public"),
                    ("followers", "followers"),
                    ("mutuals", "mutuals"),
                    ("self", "only the author"),
                    ("mentioned", "people who are mentioned"),
                ],
                default="public",
                max_length=16,
                verbose_name="visible to",
            ),
        ),
    ]
