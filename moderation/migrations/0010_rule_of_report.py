import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("about", "0001_initial"), ("moderation", "0009_digest_words")]

    operations = [
        migrations.AddField(
            model_name="report",
            name="rule",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="about.rule",
                verbose_name="rule",
            ),
        ),
    ]
