"""Accounts, tokens and the admin as Django apps."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig as DjangoAdminConfig
from django.utils.translation import gettext_lazy as _


class AccountsConfig(AppConfig):
    """The app of users, sessions and policy."""

    name = "accounts"
    verbose_name = _("Accounts")

    def ready(self) -> None:
        """Connect the receivers."""
        from accounts import receivers  # noqa: F401


class TokensConfig(AppConfig):
    """Knox, as the admin calls it."""

    name = "knox"
    verbose_name = _("API tokens")

    def ready(self) -> None:
        """Name knox's tokens in the reader's language."""
        meta = self.get_model("AuthToken")._meta
        meta.verbose_name, meta.verbose_name_plural = _("API token"), _("API tokens")


class AdminConfig(DjangoAdminConfig):
    """Django's admin, on the site's own AdminSite."""

    default_site = "accounts.site.AdminSite"
