from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="SitemapPart",
            fields=[
                ("first_id", models.BigIntegerField(primary_key=True, serialize=False)),
            ],
            options={
                "default_permissions": (),
            },
        ),
    ]
