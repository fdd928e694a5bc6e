from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("accounts", "0007_message_requests")]

    operations = [
        migrations.AddField(
            model_name="tokenorigin",
            name="code_digest",
            field=models.CharField(max_length=64, null=True),
        ),
        AddIndexConcurrently(
            model_name="tokenorigin",
            index=models.Index(
                condition=models.Q(("code_digest__isnull", False)), fields=["code_digest"], name="token_code"
            ),
        ),
    ]
