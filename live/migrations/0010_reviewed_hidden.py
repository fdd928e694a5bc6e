from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("live", "0009_review")]

    operations = [ValidateConstraint(model_name="livesession", name="live_reviewed_hidden")]
