from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("media", "0001_tables")]

    operations = [
        migrations.AddField(
            model_name="mediafile",
            name="is_private",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="Whether only the people of a private mention may see it.",
            ),
        ),
    ]
