"""No test imports another. Shared code is in tests/support."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
SHARED = "tests.support"
OTHERS = re.compile(r"^\s*(?:from|import)\s+(?:\.|tests\b(?!\.support\b))", re.MULTILINE)
"""Spares the parser the files without them."""


def imported(source: str, folder: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = folder.parts[: len(folder.parts) - node.level + 1] if node.level else ()
            yield from (".".join([*above, *filter(None, [node.module]), alias.name]) for alias in node.names)


def of_other_tests(source: str, folder: Path) -> list[str]:
    if not OTHERS.search(source):
        return []
    return [name for name in imported(source, folder) if f"{name}.".startswith("tests.") and not is_shared(name)]


def is_shared(name: str) -> bool:
    return f"{name}.".startswith(f"{SHARED}.")


@pytest.mark.slow
def test_tests_import_only_what_is_shared() -> None:
    paths = [path.relative_to(ROOT) for path in sorted(ROOT.glob("tests/**/*.py"))]
    assert len(paths) > 200
    found = {str(path): of_other_tests((ROOT / path).read_text(), path.parent) for path in paths}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "line",
    ["from tests.items.test_api import API", "import tests.conftest", "from tests import items", "from . import x"],
)
def test_imports_of_other_tests_are_found(line: str) -> None:
    assert of_other_tests(line, Path("tests/items"))
    assert not of_other_tests("from tests.support import servers", Path("tests/items"))
