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
                    ("ban", "suspend"),
                    ("unban", "lift a suspension"),
                    ("list", "set an account rule"),
                    ("unlist", "remove an account rule"),
                    ("word", "add or change a word"),
                    ("unword", "remove a word"),
                    ("hide", "hide pictures"),
                    ("show", "show pictures again"),
                    ("block", "block a picture"),
                    ("unblock", "unblock a picture"),
                    ("uncard", "remove a link preview"),
                    ("refuse", "turn off previews of a domain"),
                    ("accept", "turn on previews of a domain"),
                ],
                max_length=16,
                verbose_name="kind",
            ),
        ),
    ]
