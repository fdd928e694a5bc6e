"""Decisions about link cards and refused hosts."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("moderation", "0001_tables"),
    ]

    operations = [
        migrations.AlterField(
            model_name="decision",
            name="verb",
            field=models.CharField(
                choices=[
                    ("hold", "hold for review"),
                    ("open", "open a case"),
                    ("approve", "approve"),
                    ("reject", "reject"),
                    ("end", "end a live session"),
                    ("warn", "warn"),
                    ("ban", "ban"),
                    ("unban", "lift a ban"),
                    ("list", "put on a list"),
                    ("unlist", "take off a list"),
                    ("word", "add or change a word"),
                    ("unword", "remove a word"),
                    ("hide", "hide pictures"),
                    ("show", "show pictures again"),
                    ("block", "block a picture"),
                    ("unblock", "no longer block a picture"),
                    ("uncard", "remove a link card"),
                    ("refuse", "refuse a host"),
                    ("accept", "no longer refuse a host"),
                ],
                max_length=16,
                verbose_name="kind",
            ),
        ),
    ]
