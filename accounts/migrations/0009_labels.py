"""Empty: the words that it gave to fields and models stand where these are made."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0008_most_followed"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = []
