from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("items", "0006_conversations")]

    operations = [
        AddIndexConcurrently(
            model_name="item",
            index=models.Index(
                condition=models.Q(("conversation__isnull", False)),
                fields=["conversation", "-id"],
                name="item_conversation",
            ),
        ),
    ]
