"""Prose of the sources: the subject of a sentence is the thing (CONTRIBUTING.md, Style)."""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RIDDLE = re.compile(
    r"(?:^|\n\s*\n\s*|(?<=[.!?])\s+)(?:who|whoever|nobody|everybody|everyone|somebody|what is)\b", re.IGNORECASE
)
"""A sentence that begins with a subject that names no thing. A part in brackets is none by itself."""
OPENING = re.compile(r"(?:what|who|whoever|nobody|no one|nothing)\b", re.IGNORECASE)
"""The beginning of a docstring or comment, also of one that asks a question, that names no thing."""
Text = tuple[int, str]
"""The line in which a text begins, and the text."""


def sources() -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    names = [name for name in listed if name and "generated" not in Path(name).parts]
    return [ROOT / name for name in names if (ROOT / name).exists()]


def strings_alone(tree: ast.AST) -> Iterator[Text]:
    """Docstrings, also of attributes: strings that are a statement."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def names_of_tests(tree: ast.AST) -> Iterator[Text]:
    """Names of tests as words, without the word `test`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.lineno, node.name.removeprefix("test_").replace("_", " ")


def comments(source: str) -> Iterator[Text]:
    """Comments; lines that follow each other in one column are one."""
    begin, words, place = 0, list[str](), (0, 0)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if token.start != (place[0] + 1, place[1]):
            yield begin, " ".join(words)
            begin, words = token.start[0], []
        words.append(token.string.lstrip("#:- "))
        place = token.start
    yield begin, " ".join(words)


def riddles(source: str) -> list[Text]:
    tree = ast.parse(source)
    prose = [*strings_alone(tree), *comments(source)]
    opened = [(line, text) for line, text in prose if OPENING.match(text.strip())]
    begun = [(line, text) for line, text in (*prose, *names_of_tests(tree)) if RIDDLE.search(text.strip())]
    return list(dict.fromkeys(opened + begun))


@pytest.mark.slow
def test_sentences_name_their_subject() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {' '.join(text.split())[:100]}"
        for path in sources()
        for line, text in riddles(path.read_text())
    ]
    assert found == [], "Begin the sentence with the thing: the reader, the worker, a deleted item."


@pytest.mark.parametrize(
    "source",
    [
        '"""Nobody waits."""',
        '"""A page.\n\nWhoever reads waits."""',
        'LIMIT = 3\n"""Rows. What is more is left out."""',
        "X = 1  # somebody else was faster",
        "# A lock.\n# Who waits is told.\nX = 1",
        '"""What a page costs."""',
        '"""What does a page cost?"""',
        'LIMIT = 3\n"""What a page may hold."""',
        "X = 1  # nothing changed",
        "# --- No one asks ---\nX = 1",
        "def test_who_may_not() -> None: ...",
    ],
)
def test_riddles_are_found(source: str) -> None:
    assert len(riddles(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        '"""A reader who waits is told; nobody is a word amid a sentence here."""',
        '"""The cost of a page, and what it asks."""',
        "# a user: somebody.name\nX = 'Who can see it'",
        "def test_readers_who_wait() -> None: ...",
    ],
)
def test_other_sentences_pass(source: str) -> None:
    assert riddles(source) == []
