import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("items", "0003_tag_posts_of_before"),
    ]

    operations = [
        migrations.AddField(
            model_name="countchange",
            name="quotes",
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="item",
            name="is_quote_revoked",
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        migrations.AddField(
            model_name="item",
            name="quotable_by",
            field=models.CharField(
                choices=[("everyone", "Everyone"), ("followers", "Followers"), ("nobody", "Only me")],
                db_default="everyone",
                default="everyone",
                max_length=16,
                verbose_name="who can quote it",
            ),
        ),
        migrations.AddField(
            model_name="item",
            name="quote_of",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="quotes",
                to="items.item",
            ),
        ),
        migrations.AddField(
            model_name="itemcounts",
            name="quotes",
            field=models.IntegerField(db_default=0, default=0),
        ),
    ]
