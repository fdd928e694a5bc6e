"""The samples that the dashboard plots: a row a minute, kept for two days."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Sample(models.Model):
    """The counts up to a minute (operation.sampling.figures), by all processes of the worker's machine.

    Counters are as the processes have them, since they were started: a rate is the difference of two rows.
    """

    at = models.DateTimeField(primary_key=True, help_text="The minute.")
    figures = models.JSONField()

    class Meta:
        verbose_name = _("sample")
        verbose_name_plural = _("dashboard")

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M}"
