"""Names of models and fields for people; nothing in the database changes."""

from django.conf import settings
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("items", "0007_labels"),
        ("timeline", "0004_lease"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="delivery",
            options={"verbose_name": "delivery", "verbose_name_plural": "deliveries"},
        ),
    ]
