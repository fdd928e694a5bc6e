"""E-mail addresses are found by an index; built beside writers."""

from django.db import migrations, models
from django.db.models.functions import Lower

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("accounts", "0009_labels")]

    operations = [
        AddIndexConcurrently(
            model_name="user",
            index=models.Index(Lower("email"), condition=~models.Q(email=""), name="user_email"),
        ),
    ]
