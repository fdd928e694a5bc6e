import django.core.validators
import django.db.models.functions.datetime
from django.db import migrations, models

import accounts.about.colours
import accounts.about.models
import web.languages


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Rule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "number",
                    models.SmallIntegerField(help_text="Rules are listed by number.", verbose_name="number"),
                ),
                (
                    "text",
                    models.CharField(
                        max_length=500,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[^\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]*\\Z",
                                "Use one line, without control characters.",
                            )
                        ],
                        verbose_name="rule",
                    ),
                ),
                ("withdrawn_at", models.DateTimeField(blank=True, editable=False, null=True, verbose_name="withdrawn")),
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
                ("id", models.SmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                (
                    "name",
                    models.CharField(
                        db_default="feedsite",
                        default="feedsite",
                        help_text="Shown in the title of every page, beside the logo, and in emails.",
                        max_length=40,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[^\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]*\\Z",
                                "Use one line, without control characters.",
                            )
                        ],
                        verbose_name="name",
                    ),
                ),
                (
                    "short_description",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Shown on the sign-up page and in previews of links to the site.",
                        max_length=200,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[^\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]*\\Z",
                                "Use one line, without control characters.",
                            )
                        ],
                        verbose_name="short description",
                    ),
                ),
                (
                    "description",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="What this site is for and who runs it. Leave an empty line between paragraphs. Addresses become links.",
                        validators=[django.core.validators.MaxLengthValidator(5000)],
                        verbose_name="description",
                    ),
                ),
                (
                    "contact_email",
                    models.EmailField(
                        blank=True, db_default="", default="", max_length=254, verbose_name="contact email"
                    ),
                ),
                (
                    "contact_username",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        max_length=30,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Za-z0-9_-]*\\Z", "A username on this site, without the @."
                            )
                        ],
                        verbose_name="contact account",
                    ),
                ),
                (
                    "logo",
                    models.JSONField(
                        blank=True, editable=False, help_text="The facts of a picture (media.objects).", null=True
                    ),
                ),
                (
                    "accent",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="For buttons and links, for example #2457c5. Leave empty for the default color.",
                        max_length=7,
                        validators=[accounts.about.colours.check],
                        verbose_name="accent color",
                    ),
                ),
                (
                    "language",
                    models.CharField(
                        blank=True,
                        choices=web.languages.default_choices,
                        db_default="",
                        default="",
                        help_text="For readers whose browser asks for a language this site doesn't have.",
                        max_length=10,
                        verbose_name="default language",
                    ),
                ),
                (
                    "time_zone",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="An IANA name like Asia/Shanghai, for readers whose time zone we don't know. Leave empty to use the configured one.",
                        max_length=64,
                        validators=[accounts.about.models.check_zone],
                        verbose_name="time zone",
                    ),
                ),
                (
                    "looking",
                    models.CharField(
                        choices=[
                            ("everybody", "anyone, no login needed"),
                            ("members", "members only: others see just the description and the sign-up page"),
                        ],
                        db_default="everybody",
                        default="everybody",
                        help_text="Public posts, profiles and search.",
                        max_length=16,
                        verbose_name="who can browse",
                    ),
                ),
                (
                    "sign_up",
                    models.CharField(
                        choices=[
                            ("open", "open: anyone can join"),
                            ("invite", "invite only"),
                            ("approval", "by approval: an admin approves each sign-up"),
                            ("closed", "closed"),
                        ],
                        db_default="open",
                        default="open",
                        max_length=16,
                        verbose_name="who can join",
                    ),
                ),
                (
                    "members_invite",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Otherwise only staff with that permission can create invitations.",
                        verbose_name="members can invite people",
                    ),
                ),
                (
                    "announcement",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Shown at the top of every page until readers close it.",
                        max_length=500,
                        verbose_name="announcement",
                    ),
                ),
                (
                    "announcement_until",
                    models.DateTimeField(
                        blank=True,
                        help_text="Leave empty to show it until you remove it.",
                        null=True,
                        verbose_name="show until",
                    ),
                ),
                (
                    "changed_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False, verbose_name="changed"
                    ),
                ),
                ("user_count", models.BigIntegerField(db_default=0, default=0, editable=False)),
                ("active_count", models.BigIntegerField(db_default=0, default=0, editable=False)),
                ("item_count", models.BigIntegerField(db_default=0, default=0, editable=False)),
            ],
            options={
                "verbose_name": "the site",
                "verbose_name_plural": "the site",
                "constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="site_one_row")],
            },
        ),
    ]
