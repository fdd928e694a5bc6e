from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("accounts", "0006_policy")]

    operations = [
        AddIndexConcurrently(
            model_name="user",
            index=models.Index(condition=models.Q(("is_active", False)), fields=["id"], name="user_inactive"),
        ),
    ]
