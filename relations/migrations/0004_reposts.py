"""Whether a follower's home shows what the followee reposts."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("relations", "0003_lists")]

    operations = [
        migrations.AddField(
            model_name="follow",
            name="reposts",
            field=models.BooleanField(
                db_default=True,
                default=True,
                help_text="Whether the follower's home shows what the followee reposts.",
            ),
        ),
    ]
