"""The rows of before are looked at beside writers."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("notifications", "0003_warnings")]

    operations = [ValidateConstraint(model_name="notification", name="notification_of_one")]
