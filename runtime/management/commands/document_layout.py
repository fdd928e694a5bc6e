import importlib
import tomllib
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

PAGE = "docs/architecture.md"
BEGIN, END = "<!-- layout: written by `manage.py document_layout` -->", "<!-- end of layout -->"


class Command(BaseCommand):
    """Writes the table of packages."""

    help = "Write the table of packages and their layers into docs/architecture.md."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Replace the table in docs/architecture.md."""
        path = settings.BASE_DIR / PAGE
        path.write_text(replace_table(path.read_text()))


def replace_table(page: str) -> str:
    """The page with the current table."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}{END}{after}"


def layers() -> list[list[str]]:
    """Packages per layer, top first, from import-linter's contract of the whole house."""
    read = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())
    (contract,) = [each for each in read["tool"]["importlinter"]["contracts"] if "containers" not in each]
    return [[name.strip() for name in layer.split("|")] for layer in contract["layers"]]


def table() -> str:
    """Each package's layer and docstring's first line."""
    rows = ["| layer | package | holds |\n|---:|---|---|\n"]
    all_layers = layers()
    for number, layer in enumerate(all_layers):
        for name in layer:
            holds = (importlib.import_module(name).__doc__ or "").strip().splitlines()[0]
            rows.append(f"| {len(all_layers) - number} | `{name}/` | {holds} |\n")
    return "".join(rows)
