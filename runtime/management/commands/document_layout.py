import importlib
import tomllib
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

PAGE = "docs/architecture.md"
BEGIN, END = "<!-- layout: written by `manage.py document_layout` -->", "<!-- end of layout -->"


class Command(BaseCommand):
    """Writes the table of packages."""

    help = "Write the table of packages and their floors into docs/architecture.md."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Replace the table in docs/architecture.md."""
        path = settings.BASE_DIR / PAGE
        path.write_text(drawn_into(path.read_text()))


def drawn_into(page: str) -> str:
    """The page with the current table."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}{END}{after}"


def floors() -> list[list[str]]:
    """Packages per floor, top first, from import-linter's contract."""
    contract = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())
    (layers,) = contract["tool"]["importlinter"]["contracts"]
    return [[name.strip() for name in floor.split("|")] for floor in layers["layers"]]


def table() -> str:
    """Each package's floor and docstring's first line."""
    rows = ["| floor | package | holds |\n|---:|---|---|\n"]
    all_floors = floors()
    for number, floor in enumerate(all_floors):
        for name in floor:
            holds = (importlib.import_module(name).__doc__ or "").strip().splitlines()[0]
            rows.append(f"| {len(all_floors) - number} | `{name}/` | {holds} |\n")
    return "".join(rows)
