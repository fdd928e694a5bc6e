from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0006_quotes")]

    operations = [
        migrations.AddField(
            model_name="user",
            name="takes_requests",
            field=models.BooleanField(
                db_default=True, default=True, help_text="Whether strangers may write to the user in private mentions."
            ),
        ),
    ]
