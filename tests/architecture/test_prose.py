"""Prose of the sources, pages and texts: the subject of a sentence is the thing (CONTRIBUTING.md, Style)."""

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
DANGLING = re.compile(
    r"the same\b|as\b|…|\.\.\.|those\b|so (?:many|long|much|few)\b|for so long\b|see the module\b|and\b|or\b"
    r"|(?:it|its|this|that|they|these)\b|of (?:a|an|the|each|one)\b[^,:]*[.:]",
    re.IGNORECASE,
)
"""The beginning of a docstring that says nothing without the lines around it, so it could not stand in an index."""
WORD = re.compile(r"\b(?:nobody|whoever|everybody)\b", re.IGNORECASE)
"""Words that name no thing anywhere in a sentence."""
SAID = re.compile(
    r"(?:^|(?<=[.!?])\s+|(?<=[.!?]\*\*)\s+)[*(“]*(?:who|whoever|nobody|everybody|everyone|somebody|no one|what)\b"
    r"(?:[^.!?]|[.!?](?=\w))*(?:[.!?]|$)",
    re.IGNORECASE,
)
"""A sentence of a page whose subject names no thing."""
Text = tuple[int, str]
"""The line in which a text begins, and the text."""


def sources(*patterns: str) -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    names = [name for name in listed if name and "_pb2" not in name]
    return [ROOT / name for name in names if (ROOT / name).exists()]


# --- Python ----------------------------------------------------------------------------------------------
def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements of a module, which hold its prose: a fifth of the nodes of its tree."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(tree, block, ()):
            yield node
            yield from statements(node)


def strings_alone(tree: ast.AST) -> Iterator[Text]:
    """Docstrings, also of attributes: strings that are a statement."""
    for node in statements(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def names_of_tests(tree: ast.AST) -> Iterator[Text]:
    """Names of tests as words, without the word `test`."""
    for node in statements(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.lineno, node.name.removeprefix("test_").replace("_", " ")


def comments(source: str) -> Iterator[Text]:
    """Comments; lines that follow each other in one column are one."""
    if "#" not in source:
        return
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


def bare(text: str) -> str:
    """A text without the code that it quotes and the titles of its pictures."""
    return re.sub(r"`[^`]*`|!\[[^\]]*\]", "`", text)


def riddles(source: str, *, is_test: bool = False) -> list[Text]:
    """Docstrings and comments of a module that break the rule. Tests may tell a story from line to line, in any words
    but for the beginning of a sentence.
    """
    tree = ast.parse(source)
    docs = list(strings_alone(tree))
    prose = [*docs, *comments(source)]
    found = [(line, text) for line, text in prose if OPENING.match(text.strip())]
    found += [(line, text) for line, text in (*prose, *names_of_tests(tree)) if RIDDLE.search(text.strip())]
    if not is_test:
        found += [(line, text) for line, text in docs if DANGLING.match(text.strip())]
        found += [(line, text) for line, text in prose if WORD.search(bare(text))]
    return list(dict.fromkeys(found))


# --- Pages and texts -------------------------------------------------------------------------------------
def passages(page: str) -> Iterator[Text]:
    """The paragraphs, list entries and cells of a Markdown page. Headings and code are none."""
    begin, words, is_code = 0, list[str](), False
    for number, line in enumerate((*page.split("\n"), ""), 1):
        text = line.strip()
        is_fence, is_row = text.startswith("```"), text.startswith("|")
        is_code ^= is_fence
        entry = re.match(r"(?:[-*]|\d+\.) ", text)
        if words and (not text or entry or is_fence or is_row or text.startswith("#")):
            yield begin, " ".join(words)
            words = []
        if is_row and not is_code:
            yield from ((number, cell.strip()) for cell in re.split(r"(?<!\\)\|", text.strip("|")))
        elif text and not is_code and not is_fence and not text.startswith("#"):
            begin = begin if words else number
            words.append(text[entry.end() :] if entry else text)


def messages(catalogue: str) -> Iterator[Text]:
    """The texts of a catalogue of gettext, in English."""
    for found in re.finditer(r'^msgid(?:_plural)? ((?:"(?:[^"\\]|\\.)*"\s*)+)', catalogue, re.MULTILINE):
        parts = re.findall(r'"(?:[^"\\]|\\.)*"', found[1])
        yield catalogue.count("\n", 0, found.start()) + 1, "".join(map(ast.literal_eval, parts))


def notes(template: str) -> Iterator[Text]:
    """The comments of a template."""
    for found in re.finditer(r"\{#(.*?)#\}|\{% comment %\}(.*?)\{% endcomment %\}", template, re.DOTALL):
        yield template.count("\n", 0, found.start()) + 1, (found[1] or found[2]).strip()


def said(texts: Iterator[Text]) -> list[Text]:
    """Texts with a sentence that breaks the rule. A question does not, nor a label, which ends without a full stop."""
    found = []
    for line, text in texts:
        begun = [one[0].strip() for one in SAID.finditer(bare(text))]
        if WORD.search(bare(text)) or any(one.endswith((".", "!")) for one in begun):
            found.append((line, text))
    return found


def told(path: Path, found: list[Text]) -> list[str]:
    return [f"{path.relative_to(ROOT)}:{line}: {' '.join(text.split())[:100]}" for line, text in found]


@pytest.mark.slow
def test_sentences_name_their_subject() -> None:
    found = [
        line
        for path in sources("*.py")
        for line in told(path, riddles(path.read_text(), is_test=path.is_relative_to(ROOT / "tests")))
    ]
    assert found == [], "Begin the sentence with the thing: the reader, the worker, a deleted item."


def test_pages_templates_and_texts_name_their_subject() -> None:
    found = [line for path in sources("*.md") for line in told(path, said(passages(path.read_text())))]
    found += [line for path in sources("templates/*") for line in told(path, said(notes(path.read_text())))]
    found += [line for path in sources("locale/*.po") for line in told(path, said(messages(path.read_text())))]
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
        "X = 1  # a page that nobody sees",
        'class View:\n    """The same by the second version."""',
        '"""As `Store.save`."""',
        'LEAST = 20\n"""... but so many may always be."""',
        'BYTES = 1\n"""Of a replay."""',
        '"""Those whom a user follows."""',
        'LONGEST = 1\n"""So many rows are looked at."""',
        'def readable():\n    """It is read."""',
    ],
)
def test_riddles_are_found(source: str) -> None:
    assert len(riddles(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        '"""A reader who waits is told; `nobody` is the name of a user here."""',
        '"""The cost of a page, and what it asks."""',
        "# a user: somebody.name\nX = 'Who can see it'",
        "def test_readers_who_wait() -> None: ...",
        '"""Ask for the page, as a reader does."""',
    ],
)
def test_other_sentences_pass(source: str) -> None:
    assert riddles(source) == []


def test_tests_may_tell_a_story() -> None:
    source = '"""The same archive again, of everybody."""'
    assert riddles(source, is_test=True) == []
    assert len(riddles(source)) == 1


def test_riddles_of_pages_are_found() -> None:
    page = """# What a page costs
Rows. What is more
is left out.

- Whoever reads waits.
| what | a page that nobody sees |
|---|---|
| who may | nothing |
**Choice.** What a client sets is kept.
```
Nobody reads this.
```
What now? `whoever` is code.
"""
    assert [line for line, _ in said(passages(page))] == [2, 5, 6, 9]
    assert list(messages('msgid ""\n"What a page "\n"costs."\nmsgstr "Kosten"\n')) == [(1, "What a page costs.")]
    assert list(notes("<p>{# Nobody reads. #}</p>")) == [(1, "Nobody reads.")]
    assert said(iter([(1, "Who can see it"), (2, "What is new?")])) == []
