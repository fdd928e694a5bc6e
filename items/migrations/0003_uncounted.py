from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("items", "0002_blurring_filters"),
    ]

    operations = [
        migrations.AddField(
            model_name="item",
            name="uncounted",
            field=models.BooleanField(null=True),
        ),
        migrations.AddField(
            model_name="like",
            name="uncounted",
            field=models.BooleanField(null=True),
        ),
    ]
