"""The process ground as a Django app: its checks and commands."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks

ENVIRONMENT = "environment"
"""The tag of the check that a start never leaves out."""


class RuntimeConfig(AppConfig):
    """The app of embedded servers, supervisor, logs, metrics and commands."""

    name = "runtime"

    def ready(self) -> None:
        """Register the check of the environment's variable names, and load what traces need."""
        from django.conf import settings

        from runtime import traces

        checks.register(check_names, ENVIRONMENT)
        traces.prepare(is_wanted=settings.TRACES)


def check_names(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[checks.CheckMessage]:
    """Warn of variables that look like the site's and are none, as `up`, `check` and `migrate` begin."""
    from runtime import environment

    hint = "docs/settings.md lists all of them."
    return [checks.Warning(f"{each}.", hint=hint, id="feedsite.W001") for each in environment.unknown()]
