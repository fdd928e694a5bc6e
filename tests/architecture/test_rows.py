"""A row of more than three columns has names: a NamedTuple. Fewer may be named where the row is read."""

import ast
from collections.abc import Iterator

import pytest
from django.conf import settings

from tests.support.sources import sources

ROWS = {"row", "rows", "columns"}
"""The names of rows in the house."""
MOST = 3
"""Columns that may be named where a row is read."""
OTHERS = {
    "a reply of Redis or of the system, of which one part is taken": (
        "operation/doctor.py: feeds_cluster",
        "runtime/stream_server.py: listening",
        "runtime/supervisor.py: listening",
        "runtime/up.py: reserved_port",
        "storage/cluster.py: _read",
    ),
    "made a few lines above, of lists side by side": (
        "seen/redis_store.py: update",
        "timeline/home.py: _tell",
    ),
    "lines of a table that the program writes down": (
        "benchmarks/scaling.py: parts",
        "clientapi/openapi.py: document",
    ),
}
"""By the reason why more have no names: functions that take apart what is no row of a statement."""


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


def _is_written_here(values: ast.expr) -> bool:
    """Whether a loop goes over a table that stands in the file, in the loop itself or as a constant."""
    return isinstance(values, ast.Tuple | ast.List) or (isinstance(values, ast.Name) and values.id.isupper())


def _taken_apart(node: ast.AST) -> list[ast.expr]:
    """The names that a node gives to the parts of a row: in a loop, or from a name or a place."""
    if isinstance(node, ast.For | ast.comprehension):
        return [] if _is_written_here(node.iter) else [node.target]
    if isinstance(node, ast.Assign):
        taken = node.value.value if isinstance(node.value, ast.Subscript) else node.value
        is_row = taken is not node.value or (isinstance(taken, ast.Name) and taken.id in ROWS)
        return node.targets if is_row else []
    return []


def _is_factory(function: ast.AST) -> bool:
    """Whether it is a class method, which makes a row with names of what PostgreSQL gives."""
    return isinstance(function, ast.FunctionDef) and "classmethod" in map(ast.unparse, function.decorator_list)


def long_unpackings(tree: ast.AST, function: str = "") -> Iterator[tuple[str, int]]:
    """The functions and the lines in which a row is taken apart into more than `MOST` names, also one among others: in
    `for place, (name, ...) in enumerate(rows)`. A row's own factory may.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not _is_factory(node):
                yield from long_unpackings(node, node.name)
            continue
        for target in _taken_apart(node):
            parts = (part for part in ast.walk(target) if isinstance(part, ast.Tuple | ast.List))
            yield from ((function, part.lineno) for part in parts if len(part.elts) > MOST)
        yield from long_unpackings(node, function)


def test_columns_are_taken_by_their_names() -> None:
    found, others = [], set()
    for name in sources():
        tree = ast.parse((settings.BASE_DIR / name).read_text())
        found += [f"{name}:{line}" for line in by_position(tree)]
        others |= {f"{name}: {function}" for function, _line in long_unpackings(tree)}
    assert found == []
    assert others == {place for places in OTHERS.values() for place in places}


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


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("a, b, c, d = row", True),
        ("a, b, c, d = rows[0]", True),
        ("a, b, c, *rest = row", True),
        ("for a, b, c, d in rows: pass", True),
        ("for place, (a, b, c, d) in enumerate(rows): pass", True),
        ("[a for a, _, _, _ in rows]", True),
        ("for (a, b, c, d), other in zip(rows, others): pass", True),
        ("for a, b, c in rows: pass", False),
        ("for place, (a, b, c) in enumerate(rows): pass", False),
        ("for a, b, c, d in ((1, 2, 3, 4), (5, 6, 7, 8)): pass", False),
        ("for a, b, c, d in TABLE: pass", False),
        ("class Row:\n    @classmethod\n    def of(cls, row):\n        a, b, c, d = row", False),
        ("class Row:\n    def of(self, row):\n        a, b, c, d = row", True),
    ],
)
def test_long_unpackings_are_found(text: str, is_found: bool) -> None:
    assert bool([*long_unpackings(ast.parse(text))]) == is_found
