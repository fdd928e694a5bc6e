import django.contrib.postgres.fields
from django.db import migrations, models

import storage.indexes


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("media", "0001_squashed"),
    ]

    operations = [
        migrations.AddField(
            model_name="filemove",
            name="widths",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.SmallIntegerField(), db_default=[], default=list, size=None
            ),
        ),
        migrations.AddField(
            model_name="mediafile",
            name="is_moving",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="mediafile",
            name="lacks_sizes",
            field=models.BooleanField(db_default=True, default=False),
        ),
        migrations.AddField(
            model_name="mediafile",
            name="widths",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.SmallIntegerField(), db_default=[], default=list, size=None
            ),
        ),
        storage.indexes.AddIndexConcurrently(
            model_name="mediafile",
            index=models.Index(
                condition=models.Q(("kind", "image"), ("lacks_sizes", True)), fields=["-id"], name="media_unsized"
            ),
        ),
    ]
