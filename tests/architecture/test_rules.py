"""Each rule of who sees whom is SQL in one place."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
ROOMS: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]
ORACLE = "shares no text with what it judges: a rule that is wrong shall not agree with itself"


class Rule(NamedTuple):
    """A rule's marker text, and where it may stand, with reasons."""

    text: re.Pattern[str]
    places: dict[str, str]


RULES = {
    "relations": Rule(
        re.compile(r"\brelations_[a-z]+"),
        {
            "relations/": "the rule, and the tables' own room",
            "timeline/oracle.py": ORACLE,
            "moderation/user_admin.py": "names of pages of the admin",
            "operation/backup.py": "counts the rows of a backup that is tried",
            "benchmarks/": "fills tables, and measures statements beside others",
        },
    ),
    "items": Rule(
        re.compile(r"\bvisibility\s*(=|<>|IN\b)|(=|<>)\s*'(public|followers|mutuals|self|mentioned)'"),
        {
            "items/visibility.py": "the rule",
            "items/hydrate.py": "which replies are counted to readers of a public item",
            "timeline/rules.py": "the name of a stream",
            "timeline/oracle.py": ORACLE,
        },
    ),
    "sessions": Rule(
        re.compile(r"\bhidden_at\s+IS\b"),
        {"live/visibility.py": "the rule"},
    ),
}


@cache
def texts() -> dict[str, str]:
    files = [file for room in ROOMS for file in (ROOT / room).rglob("*.py") if file.parent.name != "migrations"]
    assert len(files) > 500
    return {str(file.relative_to(ROOT)): "\n".join(strings(ast.parse(file.read_text()))) for file in files}


def strings(tree: ast.AST) -> Iterator[str]:
    """The strings of a source, including parts of nested f-strings."""
    return (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_a_rule_stands_in_one_place(name: str) -> None:
    rule = RULES[name]
    found = {file for file, text in texts().items() if rule.text.search(text)}
    assert {file for file in found if not file.startswith(tuple(rule.places))} == set()
    assert [place for place in rule.places if not any(file.startswith(place) for file in found)] == []
