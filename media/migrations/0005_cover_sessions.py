from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("media", "0004_words")]

    operations = [
        migrations.AddField(
            model_name="mediafile",
            name="session_id",
            field=models.BigIntegerField(
                blank=True, help_text="Whose cover it is.", null=True, verbose_name="live session"
            ),
        ),
    ]
