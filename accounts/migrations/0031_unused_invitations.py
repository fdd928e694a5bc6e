from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("accounts", "0030_app_token")]

    operations = [
        AddIndexConcurrently(
            model_name="invitation",
            index=models.Index(
                fields=["made_by", "-id"],
                name="invitation_unused",
                condition=models.Q(revoked_at=None, uses__lt=models.F("most_uses")),
            ),
        ),
    ]
