from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0008_kept_names"),
    ]

    operations = [
        migrations.AddField(
            model_name="user",
            name="enter_sends",
            field=models.BooleanField(db_default=True, default=True),
        ),
    ]
