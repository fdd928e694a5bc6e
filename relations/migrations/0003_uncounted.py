from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("relations", "0002_account_notes"),
    ]

    operations = [
        migrations.AddField(
            model_name="follow",
            name="uncounted_followee",
            field=models.BooleanField(null=True),
        ),
        migrations.AddField(
            model_name="follow",
            name="uncounted_follower",
            field=models.BooleanField(null=True),
        ),
    ]
