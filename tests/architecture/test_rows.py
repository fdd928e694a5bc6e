"""A row of more than two columns has names: a NamedTuple, or values that are named where the row is read."""

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

ROWS = {"row", "rows", "columns"}
"""The names of rows in the house."""
MOST = 6
"""Columns that may be named where a row is read."""
NAMED = {"timeline/hydrate.py": "the page that is read most makes its rows by hand, in the row's own factory"}


def _number(node: ast.expr) -> int | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None


def by_position(tree: ast.AST) -> Iterator[int]:
    """The lines in which a column is taken by its place: `row[2]`, `rows[0][1]`, `row[1:]`. The first column alone may
    be: of rows that have no other.
    """
    for node in ast.walk(tree):
        if not isinstance(node, ast.Subscript):
            continue
        whole = node.value.value if isinstance(node.value, ast.Subscript) else node.value
        if not isinstance(whole, ast.Name) or whole.id not in ROWS or (whole is node.value and whole.id == "rows"):
            continue
        part = node.slice
        if isinstance(part, ast.Slice):
            if any(bound is not None and _number(bound) is not None for bound in (part.lower, part.upper)):
                yield node.lineno
        elif _number(part):
            yield node.lineno


def long_unpackings(tree: ast.AST) -> Iterator[int]:
    """The lines in which a row is taken apart into more than `MOST` names: by a loop, or from a name or a place."""
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.For | ast.comprehension):
            targets = [node.target]
        elif isinstance(node, ast.Assign):
            taken = node.value.value if isinstance(node.value, ast.Subscript) else node.value
            is_row = taken is not node.value or (isinstance(taken, ast.Name) and taken.id in ROWS)
            targets = node.targets if is_row else []
        yield from (target.lineno for target in targets if isinstance(target, ast.Tuple) and len(target.elts) > MOST)


def sources() -> Iterator[str]:
    """The modules that people write; tests apart."""
    found = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=settings.BASE_DIR, capture_output=True, text=True, check=True
    )
    for name in found.stdout.splitlines():
        if not {"tests", "migrations", "generated"} & set(Path(name).parts):
            yield name


def test_columns_are_taken_by_their_names() -> None:
    found = []
    for name in sources():
        tree = ast.parse((settings.BASE_DIR / name).read_text())
        lines = {*by_position(tree), *(() if name in NAMED else long_unpackings(tree))}
        found += [f"{name}:{line}" for line in sorted(lines)]
    assert found == []


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("row[2]", True),
        ("rows[0][1]", True),
        ("row[1:]", True),
        ("rows[0][4:]", True),
        ("row[0]", False),
        ("rows[0][0]", False),
        ("rows[1:]", False),
        ("row[:WIDTH]", False),
        ("row.name", False),
    ],
)
def test_places_are_found(text: str, is_found: bool) -> None:
    assert bool([*by_position(ast.parse(text))]) == is_found


def test_long_unpackings_are_found() -> None:
    assert [*long_unpackings(ast.parse("a, b, c, d, e, f, g = row\nfor a, b in rows: pass"))] == [1]
