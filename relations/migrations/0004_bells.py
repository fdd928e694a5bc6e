from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("relations", "0003_uncounted"),
    ]

    operations = [
        migrations.AddField(
            model_name="follow",
            name="bell",
            field=models.BooleanField(null=True),
        ),
        migrations.AddField(
            model_name="followrequest",
            name="bell",
            field=models.BooleanField(null=True),
        ),
    ]
