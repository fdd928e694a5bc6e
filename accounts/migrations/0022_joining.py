import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0021_username_words")]

    operations = [
        migrations.CreateModel(
            name="Application",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("username", models.CharField(max_length=30, verbose_name="username")),
                ("display_name", models.CharField(blank=True, max_length=50, verbose_name="display name")),
                ("password", models.CharField(editable=False, help_text="Hashed, as a user's.", max_length=128)),
                ("email", models.EmailField(blank=True, max_length=254, verbose_name="e-mail")),
                (
                    "language",
                    models.CharField(blank=True, help_text="Of the letter that tells the decision.", max_length=10),
                ),
                ("reason", models.TextField(blank=True, max_length=1000, verbose_name="reason")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), db_index=True, verbose_name="asked"
                    ),
                ),
            ],
            options={
                "verbose_name": "application",
                "verbose_name_plural": "applications",
                "permissions": [("decide_application", "Can decide on applications")],
                "default_permissions": ("view",),
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Lower("username"), name="application_lower_username"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Invitation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("code", models.CharField(max_length=32, unique=True)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="made"),
                ),
                ("expires_at", models.DateTimeField(blank=True, null=True, verbose_name="until")),
                ("uses", models.IntegerField(db_default=0, default=0, verbose_name="uses")),
                ("most_uses", models.IntegerField(db_default=1, default=1, verbose_name="at most")),
                ("revoked_at", models.DateTimeField(blank=True, null=True, verbose_name="revoked")),
                (
                    "made_by",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invitations",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="made by",
                    ),
                ),
            ],
            options={
                "verbose_name": "invitation",
                "verbose_name_plural": "invitations",
                "indexes": [models.Index(fields=["made_by", "-id"], name="invitation_maker")],
                "constraints": [
                    models.CheckConstraint(condition=models.Q(uses__lte=models.F("most_uses")), name="invitation_uses")
                ],
            },
        ),
        migrations.CreateModel(
            name="Invited",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="invited",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "invitation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invited",
                        to="accounts.invitation",
                        verbose_name="invitation",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [models.Index(fields=["invitation", "user"], name="invited_invitation")],
            },
        ),
    ]
