"""`document_layout`: draws the floors of the house, with the arrows of the real imports, into docs/design.md."""

import ast
import importlib
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

PAGE = "docs/design.md"
BEGIN, END = "<!-- layout: written by `manage.py document_layout` -->", "<!-- end of layout -->"


class Command(BaseCommand):
    """`document_layout`: draws the packages and their imports."""

    help = "Draw the packages and their imports into docs/design.md."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Replace the drawing in docs/design.md."""
        path = settings.BASE_DIR / PAGE
        path.write_text(drawn_into(path.read_text()))


def drawn_into(page: str) -> str:
    """The page with the drawing of now between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{drawing()}{END}{after}"


def floors() -> list[list[str]]:
    """The packages of each floor, from the roof down, as the contract of import-linter has them."""
    contract = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())
    (layers,) = contract["tool"]["importlinter"]["contracts"]
    return [[name.strip() for name in floor.split("|")] for floor in layers["layers"]]


def drawing() -> str:
    """A row for each package: its floor, what it holds, and which packages below it imports."""
    rows = ["| floor | package | holds | imports |\n|---:|---|---|---|\n"]
    all_floors = floors()
    order = [name for floor in all_floors for name in floor]
    for number, floor in enumerate(all_floors):
        for name in floor:
            below = [f"`{each}`" for each in order if each in imported(name)]
            holds = (importlib.import_module(name).__doc__ or "").strip().splitlines()[0]
            rows.append(f"| {len(all_floors) - number} | `{name}/` | {holds} | {', '.join(below) or 'nothing'} |\n")
    return "".join(rows)


@cache
def imported(package: str) -> frozenset[str]:
    """The other packages of the house that a package's modules import."""
    house = {name for floor in floors() for name in floor}
    found: set[str] = set()
    for path in (settings.BASE_DIR / package).rglob("*.py"):
        found.update(_imports(path))
    return frozenset(found & house - {package})


def _imports(path: Path) -> Iterator[str]:
    """The first words of what a module imports, wherever in the module the import stands."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.Import):
            yield from (each.name.partition(".")[0] for each in node.names)
