from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks

ENVIRONMENT = "environment"
"""Tag of checks that run at every start."""
KEY_LENGTH, KEY_CHARACTERS = 32, 10
"""Minimum length of a secret key, and minimum number of distinct characters."""
TOKEN_LENGTH = 16


class RuntimeConfig(AppConfig):
    """The app with its checks."""

    name = "runtime"

    def ready(self) -> None:
        """Register the checks."""
        checks.register(check_names, ENVIRONMENT)
        checks.register(check_secrets, ENVIRONMENT)


def check_names(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[checks.CheckMessage]:
    """Warn of unknown variables."""
    from runtime import environment

    hint = "docs/settings.md lists all of them."
    return [checks.Warning(f"{each}.", hint=hint, id="feedsite.W001") for each in environment.unknown_variables()]


def check_secrets(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[checks.CheckMessage]:
    """Refuse secrets that can be guessed."""
    from django.conf import settings

    found: list[checks.CheckMessage] = []
    if len(settings.SECRET_KEY) < KEY_LENGTH or len(set(settings.SECRET_KEY)) < KEY_CHARACTERS:
        hint = "Set 50 random characters, or remove it to get a new key in the data folder."
        found.append(checks.Error("FEEDSITE_SECRET_KEY can be guessed.", hint=hint, id="feedsite.E001"))
    if 0 < len(settings.METRICS_TOKEN) < TOKEN_LENGTH:
        hint = f"Set {TOKEN_LENGTH} random characters or more. If you remove it, only this machine may read /metrics."
        found.append(checks.Error("FEEDSITE_METRICS_TOKEN can be guessed.", hint=hint, id="feedsite.E002"))
    return found
