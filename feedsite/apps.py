from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.core.signals import request_started


class FeedsiteConfig(AppConfig):
    name = "feedsite"

    def ready(self) -> None:
        from feedsite.connections import drop_ended_sessions

        request_started.connect(drop_ended_sessions)
        checks.register(check_names)


def check_names(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[checks.CheckMessage]:
    """Warns of variables that look like the site's and are none, as `up`, `check` and `migrate` begin."""
    from feedsite import environment

    return [
        checks.Warning(f"{each}.", hint="docs/settings.md lists all of them.", id="feedsite.W001")
        for each in environment.unknown()
    ]
