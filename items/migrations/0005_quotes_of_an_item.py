from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("items", "0004_quotes")]

    operations = [
        AddIndexConcurrently(
            model_name="item",
            index=models.Index(
                condition=models.Q(("is_quote_revoked", False), ("quote_of__isnull", False), ("status", "published")),
                fields=["quote_of", "-id"],
                name="item_quotes",
            ),
        ),
    ]
