from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("about", "0001_squashed"),
    ]

    operations = [
        migrations.AddField(
            model_name="sitesettings",
            name="announcements",
            field=models.JSONField(db_default={}, default=dict),
        ),
        migrations.AddField(
            model_name="sitesettings",
            name="terms",
            field=models.TextField(db_default="", default=""),
        ),
        migrations.AddField(
            model_name="sitesettings",
            name="privacy",
            field=models.TextField(db_default="", default=""),
        ),
    ]
