"""Moderators look at live sessions in the admin, as at items and users."""

from django.contrib.auth.management import create_permissions
from django.db import migrations


def may_view(apps, schema_editor):
    """Permissions are usually made after all migrations, so this one is made here."""
    config = apps.get_app_config("live")
    config.models_module = True
    create_permissions(config, apps=apps, verbosity=0, using=schema_editor.connection.alias)
    config.models_module = None
    permission = apps.get_model("auth", "Permission").objects.get(
        content_type__app_label="live", codename="view_livesession"
    )
    for group in apps.get_model("auth", "Group").objects.filter(name="Moderators"):
        group.permissions.add(permission)


class Migration(migrations.Migration):
    dependencies = [("live", "0011_labels"), ("moderation", "0001_initial")]

    operations = [migrations.RunPython(may_view, migrations.RunPython.noop)]
