from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("notifications", "0001_tables"),
    ]

    operations = [
        migrations.AlterField(
            model_name="notification",
            name="kind",
            field=models.CharField(
                choices=[
                    ("like", "Like"),
                    ("reply", "Reply"),
                    ("repost", "Repost"),
                    ("follow", "Follow"),
                    ("follow_request", "Follow Request"),
                    ("follow_accepted", "Follow Accepted"),
                    ("mention", "Mention"),
                    ("quote", "Quote"),
                    ("live", "Live"),
                    ("warning", "Warning"),
                    ("picture", "Picture"),
                ],
                max_length=16,
            ),
        ),
    ]
