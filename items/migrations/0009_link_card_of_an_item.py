from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("items", "0008_link_cards")]

    operations = [
        AddIndexConcurrently(
            model_name="item",
            index=models.Index(
                condition=models.Q(("link_card__isnull", False)), fields=["link_card", "-id"], name="item_link_card"
            ),
        ),
    ]
