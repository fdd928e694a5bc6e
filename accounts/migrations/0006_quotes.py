from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_followed_tags"),
    ]

    operations = [
        migrations.AddField(
            model_name="user",
            name="quotable_by",
            field=models.CharField(
                choices=[("everyone", "Everyone"), ("followers", "Followers"), ("nobody", "Only me")],
                db_default="everyone",
                default="everyone",
                help_text="Who may quote what the user publishes from now on.",
                max_length=16,
            ),
        ),
    ]
