from pathlib import Path

from django.db import migrations, models

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):
    dependencies = [("items", "0001_tables")]

    operations = [
        migrations.AddField(
            model_name="itemtag",
            name="is_public_post",
            field=models.BooleanField(
                db_default=False, editable=False, help_text="Whether the item is a public post; kept by triggers."
            ),
        ),
        migrations.RunSQL((SQL / "tag_posts.sql").read_text()),
    ]
