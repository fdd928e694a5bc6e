from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("media", "0002_private"),
    ]

    operations = [
        migrations.AlterField(
            model_name="mediafile",
            name="use",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "not used"),
                    ("item", "post"),
                    ("avatar", "avatar"),
                    ("banner", "banner"),
                    ("cover", "cover"),
                    ("link", "link preview"),
                ],
                db_default="",
                default="",
                max_length=8,
                verbose_name="use",
            ),
        ),
    ]
