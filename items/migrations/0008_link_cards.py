import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("items", "0007_conversation_index"),
        ("media", "0003_link_cards"),
    ]

    operations = [
        migrations.CreateModel(
            name="RefusedHost",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "host",
                    models.CharField(
                        help_text="Includes its subdomains.", max_length=254, unique=True, verbose_name="domain"
                    ),
                ),
                ("note", models.CharField(blank=True, max_length=200, verbose_name="note")),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="since"),
                ),
            ],
            options={
                "verbose_name": "domain without previews",
                "verbose_name_plural": "domains without previews",
            },
        ),
        migrations.CreateModel(
            name="LinkCard",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("url", models.CharField(max_length=2000, verbose_name="address")),
                ("digest", models.CharField(help_text="SHA-256 of the address.", max_length=64)),
                (
                    "domain",
                    models.CharField(help_text="The host, its parts turned round: com.example.www.", max_length=254),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("waiting", "waiting"), ("asked", "being read"), ("done", "read")],
                        default="done",
                        max_length=8,
                        verbose_name="state",
                    ),
                ),
                ("asked_at", models.DateTimeField(null=True, verbose_name="asked")),
                ("facts", models.JSONField(help_text="What is shown (items.bodies.LinkFacts).", null=True)),
                ("error", models.CharField(blank=True, max_length=200, verbose_name="error")),
                (
                    "is_removed",
                    models.BooleanField(
                        default=False, help_text="Removed by moderators for good.", verbose_name="removed"
                    ),
                ),
                (
                    "checked_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When it was last looked for items that have it.",
                    ),
                ),
                (
                    "picture",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="media.mediafile",
                    ),
                ),
            ],
            options={
                "verbose_name": "link preview",
                "verbose_name_plural": "link previews",
                "default_permissions": ("view", "change"),
            },
        ),
        migrations.AddField(
            model_name="item",
            name="link_card",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="items",
                to="items.linkcard",
            ),
        ),
        migrations.AddIndex(
            model_name="linkcard",
            index=models.Index(
                condition=models.Q(("state", "done"), _negated=True), fields=["state", "-id"], name="link_card_waiting"
            ),
        ),
        migrations.AddIndex(
            model_name="linkcard",
            index=models.Index(
                fields=["domain", "asked_at"],
                name="link_card_domain",
                opclasses=["text_pattern_ops", "timestamptz_ops"],
            ),
        ),
        migrations.AddIndex(
            model_name="linkcard",
            index=models.Index(
                condition=models.Q(("picture__isnull", False)), fields=["picture"], name="link_card_picture"
            ),
        ),
        migrations.AddIndex(
            model_name="linkcard",
            index=models.Index(fields=["checked_at"], name="link_card_checked"),
        ),
        migrations.AddConstraint(
            model_name="linkcard",
            constraint=models.UniqueConstraint(fields=("digest",), name="link_card_digest"),
        ),
    ]
