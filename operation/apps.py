"""Operation as a Django app: doctor, backup and gauges."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class OperationConfig(AppConfig):
    """The app that looks at the whole site from outside."""

    name = "operation"
    verbose_name = _("Operation")
