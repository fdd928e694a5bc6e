"""A number whose words tell its unit has the unit in its name, so that a reader of its uses sees it."""

import ast
import re
from collections.abc import Iterator

from django.conf import settings

from tests.support.sources import sources

UNITS = {"second": "SECONDS?", "millisecond": "(MS|MILLISECONDS?)", "byte": "BYTES?", "minute": "MINUTES?"}
WORDS = re.compile(r"(?:# )?(second|millisecond|byte|minute)s?\b", re.IGNORECASE)


def is_number(node: ast.expr) -> bool:
    """Whether this is a number, or is made of numbers only."""
    kinds = (ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Name, ast.Load, ast.Tuple)
    return all(
        isinstance(part, kinds) or (isinstance(part, ast.Constant) and type(part.value) in (int, float))
        for part in ast.walk(node)
    )


def numbers(text: str) -> Iterator[tuple[str, list[str]]]:
    """The numbers that a module or a class of it names, with the comments and the docstring beside each."""
    lines = text.splitlines()
    tree = ast.parse(text)
    for body in (tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))):
        for node, after in zip(body, [*body, None][1:], strict=True):
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None or not is_number(node.value):
                continue
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id.isupper():
                told = [lines[(node.end_lineno or node.lineno) - 1].partition("  # ")[2]]
                first = node.lineno - 1
                while first and lines[first - 1].startswith("#"):
                    first -= 1
                told.append(lines[first])
                if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                    told.append(str(after.value.value))
                yield target.id, told


def without_unit(text: str) -> list[str]:
    """The numbers of a module whose words begin with a unit that their names lack."""
    return [
        name
        for name, told in numbers(text)
        for found in filter(None, map(WORDS.match, told))
        if not re.search(rf"(^|_){UNITS[found[1].lower()]}$", name)
    ]


def test_a_number_has_the_unit_that_its_words_tell_in_its_name() -> None:
    found = {name: without_unit((settings.BASE_DIR / name).read_text()) for name in sources()}
    assert {name: lacking for name, lacking in found.items() if lacking} == {}


def test_the_unit_is_found_in_docstrings_and_comments() -> None:
    written = '''
A = 3
"""Seconds that it takes."""
# Bytes of a part.
# More is refused.
B = 1 << 20
C, D = 4, 5
E = 2.5  # seconds for the whole
F_SECONDS = (0.1, 5.0)
"""Seconds before the first and the last."""


class G:
    H: int = 30
    """Milliseconds."""
'''
    assert without_unit(written) == ["A", "B", "E", "H"]
