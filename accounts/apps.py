from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.admin.checks import check_admin_app, check_dependencies
from django.core import checks
from django.utils.translation import gettext_lazy as _


class AccountsConfig(AppConfig):
    name = "accounts"
    verbose_name = _("Accounts")

    def ready(self) -> None:
        from accounts import receivers  # noqa: F401


class AdminConfig(SimpleAdminConfig):
    """Django's admin on the site's AdminSite."""

    default_site = "accounts.site.AdminSite"

    def ready(self) -> None:
        """Register the admin's checks."""
        checks.register(check_dependencies, checks.Tags.admin)
        checks.register(check_admin, checks.Tags.admin)


def check_admin(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[checks.CheckMessage]:
    """Run the admin's checks."""
    from django.contrib import admin

    admin.autodiscover()
    found: list[checks.CheckMessage] = check_admin_app(app_configs, **kwargs)
    return found
