"""Empty: the words that it gave to fields and models stand where these are made."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("moderation", "0010_rule_of_report"),
    ]

    operations = []
