from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_uncounted"),
    ]

    operations = [
        migrations.AddField(
            model_name="user",
            name="plays_videos",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="user",
            name="post_repliable_by",
            field=models.CharField(db_default="everyone", default="everyone", max_length=16),
        ),
        migrations.AddField(
            model_name="user",
            name="hides_suggestions",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="user",
            name="text_size",
            field=models.CharField(db_default="", default="", max_length=8),
        ),
        migrations.AddField(
            model_name="user",
            name="enter_sends",
            field=models.BooleanField(db_default=True, default=True),
        ),
        # Names are held for ever. The version before 0.2.0 still writes `until`, so the release after 0.2.0 drops it.
        migrations.AlterField(
            model_name="heldname",
            name="until",
            field=models.DateTimeField(db_index=True, null=True),
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveField(model_name="heldname", name="until")]
        ),
    ]
