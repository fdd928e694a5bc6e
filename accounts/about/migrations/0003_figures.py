from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("about", "0002_texts"),
    ]

    operations = [
        migrations.AddField(
            model_name="sitesettings",
            name="shows_figures",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
