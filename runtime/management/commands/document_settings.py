"""`document_settings`: writes the documents that are made from the table of variables (runtime/options.py)."""

import textwrap
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from runtime.options import GROUPS, Option

WIDTH = 110

EXAMPLE = """\
# The variables of the site; docs/settings.md says what each may be. Written by `manage.py document_settings`.
#
# Copy this file to .env beside manage.py, which compose.yaml reads too (it wants POSTGRES_PASSWORD besides), or to
# /etc/feedsite.env for systemd. A variable of the environment wins. Without any of them `python3 manage.py up` runs the
# site with servers of its own.
#
# One NAME=value a line, without a comment behind it; a value with spaces, $, # or quotes stands in 'single quotes'.
"""

PAGE = """\
# Settings

Written by `manage.py document_settings` from `runtime/options.py`.

The site reads its settings from the environment, and the others from `.env` beside manage.py or the file that
`FEEDSITE_ENV_FILE` names: one `NAME=value` a line; values with spaces, `$`, `#` or quotes stand in single quotes.
Compose gives `.env` to every container. The systemd units read `/etc/feedsite.env`; for a command by hand set
`FEEDSITE_ENV_FILE=/etc/feedsite.env`. A variable without a value (`FEEDSITE_HOST=`) counts as not set.

Everything is checked before anything starts. `up`, `check`, `doctor` and every other command end with exit code 2 and a
line for each variable that is wrong, which names it and says what is allowed. Values of secrets and addresses are not
repeated. A name that begins with `FEEDSITE_` and is not in this list is a warning of `up`, `check`, `migrate` and
`doctor`, with the name that is most alike.

A first site needs none of them; a public one needs these:

- the address on which `up` listens: `PORT`, `FEEDSITE_HOST`
- the data folder (database, queue, logs, secret key), which with `PORT` lets several sites run side by side:
  `FEEDSITE_DATA_DIR`
- a PostgreSQL of your own: `FEEDSITE_DATABASE_URL`
- the feeds, which may lose everything at any time, on a server or a [cluster](operations.md#feeds-on-a-redis-cluster):
  `FEEDSITE_REDIS_URL`
- Celery's queue, rate counters, and plays until they are merged: `FEEDSITE_BROKER_URL`, `FEEDSITE_CACHE_URL`,
  `FEEDSITE_PLAYED_URL`
- a public site behind a proxy: `FEEDSITE_HTTPS`, `FEEDSITE_ALLOWED_HOSTS`, `FEEDSITE_CSRF_TRUSTED_ORIGINS`
- [letters](operations.md#mail) with confirmations, forgotten passwords and news of logins: `FEEDSITE_URL`,
  `FEEDSITE_EMAIL_URL`, `FEEDSITE_EMAIL_FROM`
"""


class Command(BaseCommand):
    """`document_settings`: writes the documents of the settings."""

    help = "Write .env.example and docs/settings.md from the table of variables."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Write .env.example and docs/settings.md."""
        for path, text in documents().items():
            (settings.BASE_DIR / path).write_text(text)


def documents() -> dict[str, str]:
    """The text of each file, by its path in the project."""
    return {".env.example": _example(), "docs/settings.md": _page()}


def _example() -> str:
    parts = [EXAMPLE]
    for group in GROUPS:
        parts.append(f"\n# --- {group.title} ".ljust(107, "-") + "\n")
        parts += [_comment(group.text)] if group.text else []
        for option in group.options:
            about = f"{option.text} Default: {option.otherwise}." if option.otherwise else option.text
            parts.append(_comment(about.replace("`", "")))
            parts.append(f"#{option.name}={option.example or option.default}\n")
    return "".join(parts)


def _comment(text: str) -> str:
    lines = textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)
    return "".join(f"# {line}\n" for line in lines)


def _page() -> str:
    parts = [PAGE]
    for group in GROUPS:
        parts.append(f"\n## {group.title}\n")
        parts += [f"{group.text}\n\n"] if group.text else []
        parts.append("| variable | default | what | it must be |\n|---|---|---|---|\n")
        parts += [_row(option) for option in group.options]
    return "".join(parts)


def _row(option: Option) -> str:
    default = option.otherwise or f"`{option.default}`"
    cells = (f"`{option.name}`", default, option.text, option.kind.allowed)
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |\n"
