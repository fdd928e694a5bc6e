"""No model has the colour of a picture any more. Its column stays for the version before, which fills it.

See docs/decisions.md: A blurhash has the colour of the ground.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("media", "0006_session_index")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.AlterField(
                    model_name="mediafile",
                    name="colour",
                    field=models.CharField(max_length=7, default="", db_default=""),
                )
            ],
            state_operations=[migrations.RemoveField(model_name="mediafile", name="colour")],
        )
    ]
