from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig as DjangoAdminConfig


class AccountsConfig(AppConfig):
    name = "accounts"


class AdminConfig(DjangoAdminConfig):
    default_site = "accounts.site.AdminSite"
