"""Empty: the words that it gave to fields and models stand where these are made."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("media", "0003_digest"),
    ]

    operations = []
