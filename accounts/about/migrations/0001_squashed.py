import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [("about", "0001_tables"), ("about", "0002_read_only")]

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Rule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("number", models.SmallIntegerField()),
                ("text", models.CharField(max_length=500)),
                ("withdrawn_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name": "site rule",
                "verbose_name_plural": "site rules",
                "ordering": ["number", "id"],
            },
        ),
        migrations.CreateModel(
            name="SiteSettings",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("name", models.CharField(db_default="feedsite", default="feedsite", max_length=40)),
                ("short_description", models.CharField(db_default="", default="", max_length=200)),
                ("description", models.TextField(db_default="", default="")),
                ("contact_email", models.EmailField(db_default="", default="", max_length=254)),
                ("contact_username", models.CharField(db_default="", default="", max_length=30)),
                ("logo", models.JSONField(null=True)),
                ("accent", models.CharField(db_default="", default="", max_length=7)),
                ("language", models.CharField(db_default="", default="", max_length=10)),
                ("time_zone", models.CharField(db_default="", default="", max_length=64)),
                ("looking", models.CharField(db_default="everybody", default="everybody", max_length=16)),
                ("sign_up", models.CharField(db_default="open", default="open", max_length=16)),
                ("members_invite", models.BooleanField(db_default=False, default=False)),
                ("announcement", models.CharField(db_default="", default="", max_length=500)),
                ("announcement_until", models.DateTimeField(null=True)),
                ("changed_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("user_count", models.BigIntegerField(db_default=0, default=0)),
                ("active_count", models.BigIntegerField(db_default=0, default=0)),
                ("item_count", models.BigIntegerField(db_default=0, default=0)),
                ("read_only_why", models.CharField(db_default="", default="", max_length=200)),
            ],
            options={
                "verbose_name": "the site",
                "verbose_name_plural": "the site",
                "constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="site_one_row")],
            },
        ),
    ]
