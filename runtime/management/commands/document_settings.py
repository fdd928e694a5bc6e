import textwrap
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from pydantic.fields import FieldInfo

from runtime.environment import allowed_values
from runtime.options import SECTIONS, VARIABLES, Options
from runtime.rate_table import RATES

WIDTH = 110

EXAMPLE = """\
# The settings of the site. docs/settings.md lists the allowed values. Written by `manage.py document_settings`.
#
# Copy this file to .env beside manage.py, or to /etc/feedsite.env for systemd. compose.yaml reads .env too, and also
# needs POSTGRES_PASSWORD. A variable of the environment wins over this file. No setting is required: without any,
# `python3 manage.py up` runs the site with its own servers.
#
# Write one NAME=value per line, with no comment after it. Put values with spaces, $, # or quotes in 'single quotes'.
"""

PAGE = """\
# Settings

Written by `manage.py document_settings` from `runtime/options.py`.

The site reads its settings from the environment, then from a file: `.env` beside manage.py, or the one that
`FEEDSITE_ENV_FILE` names. Write one `NAME=value` per line, values with spaces, `$`, `#` or quotes in single quotes.
Compose gives `.env` to every container. The systemd units read `/etc/feedsite.env`. A variable without a value
(`FEEDSITE_HOST=`) counts as not set.

All settings are checked first. If a value is wrong, every command exits with code 2 and prints a line per wrong
variable, with the allowed values, never a secret or an address. `up`, `check`, `migrate` and `doctor` warn of an
unknown name that begins with `FEEDSITE_`.

A first site needs no settings. `manage.py setup` writes those of a public site ([install.md](install.md)). Several
sites on one machine each need their own `FEEDSITE_DATA_DIR` and `PORT`.
"""


class Command(BaseCommand):
    """Generates the documents of the settings."""

    help = "Write .env.example and docs/settings.md from the settings."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Write .env.example and docs/settings.md."""
        for path, text in documents().items():
            (settings.BASE_DIR / path).write_text(text)


def documents() -> dict[str, str]:
    """The text of each file by path."""
    return {".env.example": _example(), "docs/settings.md": _page()}


def _example() -> str:
    parts = [EXAMPLE]
    for variable, name in VARIABLES.items():
        if name in SECTIONS:
            title, text = SECTIONS[name]
            parts.append(f"\n# --- {title} ".ljust(107, "-") + "\n" + _comment(text))
        field = Options.model_fields[name]
        otherwise, example = _default_and_example(field)
        about = f"{field.description} Default: {otherwise}." if otherwise else str(field.description)
        parts.append(f"{_comment(about.replace('`', ''))}#{variable}={example or _default(field)}\n")
    return "".join(parts)


def _comment(text: str) -> str:
    lines = textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)
    return "".join(f"# {line}\n" for line in lines)


def _page() -> str:
    parts = [PAGE]
    for variable, name in VARIABLES.items():
        if name in SECTIONS:
            title, text = SECTIONS[name]
            parts.append(f"\n## {title}\n\n" + (f"{text}\n\n" if text else ""))
            parts.append("| variable | default | what | allowed |\n|---|---|---|---|\n")
        field = Options.model_fields[name]
        default = _default_and_example(field)[0] or f"`{_default(field)}`"
        parts.append(_row(f"`{variable}`", default, str(field.description), _shorten(allowed_values(field))))
    parts.append("\n## The rates\n\nNames for `FEEDSITE_RATES`.\n\n| rate | default | what |\n|---|---|---|\n")
    parts += [_row(f"`{name}`", f"`{rate.default}`", rate.text) for name, rate in RATES.items()]
    return "".join(parts)


def _shorten(text: str) -> str:
    return text.removeprefix("a whole number from ").removeprefix("an address such as ")


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |\n"


def _default_and_example(field: FieldInfo) -> tuple[str, str]:
    shown: Any = field.json_schema_extra
    return shown["otherwise"], shown["example"]


def _default(field: FieldInfo) -> str:
    if isinstance(field.default, bool):
        return str(int(field.default))
    if isinstance(field.default, float):
        return f"{field.default:.12g}"
    return ",".join(field.default) if isinstance(field.default, list) else str(field.default)
