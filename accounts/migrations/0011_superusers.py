"""`up` and the link for the first administrator ask whether there is a superuser; built beside writers."""

from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("accounts", "0010_email")]

    operations = [
        AddIndexConcurrently(
            model_name="user",
            index=models.Index(condition=models.Q(("is_superuser", True)), fields=["id"], name="user_superuser"),
        ),
    ]
