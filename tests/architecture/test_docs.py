"""Files, names, commands and headings named in documents and sources exist."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, get_commands, load_command_class

from runtime.options import VARIABLES, Options
from web.static_files import made_files

ROOT = Path(settings.BASE_DIR)
NAMED = re.compile(r"`(?P<path>[\w./-]+\.(?:py|js|html|css|proto|toml|md))(?::[ ]?(?P<names>[\w.]+))?`")
ONE_TEST = re.compile(r"\b(?P<path>[\w/]+/test_\w+\.py)::(?P<name>\w+)")
"""One test, as pytest takes it."""
IN_SOURCES = re.compile(r"(?<![\w/.{}*<>-])((?:[a-z]\w*/)+\w+\.(?:py|md|html|js|css)|test_\w+\.py)\b")
"""A path with a folder, or a file of tests."""
OF_FOLDER = re.compile(r"^\|[^|\n]*`([\w/]+/)`[^|\n]*\|.*\n\|[-| ]+\|\n((?:\|.*\n?)+)", re.MULTILINE)
"""Its first heading names the files' folder."""
CODE = re.compile(r"^ *```\w*\n(.*?)^ *```$|`([^`\n]+)`", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^(?:(?:python3 |\.venv/bin/python )?manage\.py|feedsite) ([a-z_]+)(.*)", re.MULTILINE)
"""docs/install.md calls the shell `feedsite`."""
SHELL = re.compile(r" (?:&&|\|\|?|>|#) .*")
"""The shell's part of a command line."""
DEFAULT = re.compile(r"`(FEEDSITE_[A-Z0-9_]+)` \(([\d.]+)\b")
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]+))?\)")
SEE = re.compile(r"See docs/decisions\.md: (.+)\.$", re.MULTILINE)
"""How a source names a record."""
SECTION = re.compile(r"\bdocs/(?!decisions)(\w+\.md), ([A-Z][\w -]*\w)")
JOINT = re.compile(r"\"?\n\s*(?:#|f?\")?\s*")
"""Where a text continues in the next line."""
ABSENT = frozenset({"utils.py", "helpers.py"})
"""docs/layout.md says that these do not exist."""


def files() -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    return [name for name in listed if name and (ROOT / name).is_file()]


FILES = files()
PAGES = [name for name in FILES if name.endswith(".md") and name != "CHANGELOG.md"]
"""The changelog names what existed at the time."""
ENDS = {"/".join(parts[at:]) for parts in (name.split("/") for name in FILES) for at in range(len(parts))}
"""A document may name a file by the end of its path."""
COMMANDS = {*get_commands(), "help", "version"}
WITHOUT_PARSER = {"help", "test", "version"}


def lies(text: str) -> list[str]:
    found = []
    for match in NAMED.finditer(text):
        path, names = match["path"], match["names"] or ""
        if path in ABSENT or (path in ENDS and not names):
            continue
        sources = [(ROOT / file).read_text() for file in FILES if f"/{file}".endswith(f"/{path}")]
        if not any(all(re.search(rf"\b{name}\b", source) for name in names.split(".")) for source in sources):
            found.append(match[0])
    return found


def untested(text: str) -> list[str]:
    found = []
    for match in ONE_TEST.finditer(text):
        file = ROOT / match["path"]
        if not file.is_file() or not re.search(rf"^(?:async )?def {match['name']}\(", file.read_text(), re.MULTILINE):
            found.append(match[0])
    return found


def misplaced(text: str) -> list[str]:
    rows = [(folder, row) for folder, table in OF_FOLDER.findall(text) for row in table.splitlines()]
    named = [(folder + name) for folder, row in rows for name in re.findall(r"`([\w.-]+\.\w+)`", row.split("|")[1])]
    return [path for path in named if path not in FILES]


def is_default(variable: str, value: str) -> bool:
    return variable in VARIABLES and Options.model_fields[VARIABLES[variable]].default in (None, float(value))


def commands(text: str) -> list[tuple[str, str]]:
    """Pairs of command and arguments."""
    return COMMAND.findall("\n".join(block or words for block, words in CODE.findall(text)))


def unknown(text: str) -> list[str]:
    """Unknown commands and settings, and wrong defaults."""
    strange = [f"manage.py {name}" for name, _ in commands(text) if name not in COMMANDS]
    defaults = [f"{name}={value}" for name, value in DEFAULT.findall(text) if not is_default(name, value)]
    return strange + defaults


def refused(text: str) -> list[str]:
    """Commands with wrong arguments."""
    found = []
    for name, rest in commands(text):
        words = shlex.split(SHELL.sub("", re.sub(r"\$\([^()]*\)", "x", rest)))
        if words and not {"…", "--help"} & set(words) and name in COMMANDS - WITHOUT_PARSER:
            parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
            try:
                parser.parse_args(words)
            except CommandError as error:
                found.append(f"{name}{rest}: {error}")
    return found


def anchors(page: Path) -> set[str]:
    """GitHub's addresses of the headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def nowhere(page: str) -> Iterator[str]:
    """Dead links."""
    for path, anchor in LINK.findall((ROOT / page).read_text()):
        target = (ROOT / page).parent / path if path else ROOT / page
        if "://" not in path and (not target.exists() or (anchor and anchor not in anchors(target))):
            yield f"{path}#{anchor}"


@pytest.mark.parametrize("page", PAGES)
def test_documents_name_what_is_there(page: str) -> None:
    text = (ROOT / page).read_text()
    assert [*lies(text), *untested(text), *misplaced(text), *unknown(text), *refused(text), *nowhere(page)] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_table_is_one(page: str) -> None:
    """An empty line ends a table."""
    lines = (ROOT / page).read_text().splitlines()
    for above, line, below in zip(["", *lines], lines, [*lines[1:], ""], strict=False):
        if line.startswith("|") and not above.startswith("|"):
            assert re.fullmatch(r"\|[-:| ]+\|", below), f"no head: {line}"


def test_sources_name_files_that_are_there() -> None:
    found = [
        f"{name}: {path}"
        for name in FILES
        if name.endswith((".py", ".js", ".html")) and name != "tests/architecture/test_docs.py"
        for path in IN_SOURCES.findall((ROOT / name).read_text())
        if path not in ENDS and path not in made_files() and not path.startswith("admin/")  # Django's own templates
    ]
    assert found == []


def test_sources_name_decisions_that_are_there() -> None:
    titles = set(re.findall(r"^### (.+)$", (ROOT / "docs/decisions.md").read_text(), re.MULTILINE))
    sources = [name for name in FILES if name.endswith((".py", ".js"))]
    named = {(name, title) for name in sources for title in SEE.findall((ROOT / name).read_text())}
    assert {(name, title) for name, title in named if title not in titles} == set()


def test_sources_name_sections_that_are_there() -> None:
    sources = [name for name in FILES if name.endswith((".py", ".yaml", ".yml", ".ini", ".conf", ".example"))]
    texts = [re.sub(" +", " ", JOINT.sub(" ", (ROOT / name).read_text())) for name in sources]
    named = {(page, title) for text in texts for page, title in SECTION.findall(text)}
    assert len(named) >= 10
    there = {page: re.findall(r"^#+ (.+)$", (ROOT / "docs" / page).read_text(), re.MULTILINE) for page, _ in named}
    assert {(page, title) for page, title in named if not title.startswith(tuple(there[page]))} == set()


def test_the_readme_leads_to_the_code() -> None:
    table = (ROOT / "README.md").read_text().partition("| to find | look at |")[2].partition("\n\n")[0]
    expected = {
        "where a home page is merged": ["timeline/home.py: HomeWalk.fill_from_windows"],
        "where fan-out happens": ["timeline/fanout.py: fan_out"],
        "where the rule of visibility changes": ["items/visibility.py", "relations/rules.py", "timeline/rules.py"],
    }
    for row, names in expected.items():
        (line,) = [line for line in table.splitlines() if line.startswith(f"| {row} |")]
        assert all(f"`{name}`" in line for name in names), row


def test_names_that_lead_nowhere_are_found() -> None:
    text = "`storage/nowhere.py`, `storage/events.py: no_such_name`, `storage/events.py: Gap`, `events.py`"
    assert lies(text) == ["`storage/nowhere.py`", "`storage/events.py: no_such_name`"]
    assert untested("run `tests/architecture/test_docs.py::test_documents_name_what_is_there`") == []
    missing = ["tests/nowhere/test_docs.py::test_a", "tests/architecture/test_docs.py::test_documents"]
    assert untested(f"pytest {missing[0]} -x, {missing[1]}[README.md]") == missing
    table = "| file in `tests/support/` | what |\n|---|---|\n| `grown.py` | `x.py` |\n| `test_docs.py` | |\n"
    assert misplaced(table) == ["tests/support/test_docs.py"]
    text = "`manage.py up` `manage.py no_such`, `FEEDSITE_CHECK_READERS` (21), `FEEDSITE_WEB_THREADS` (4 s)"
    assert unknown(text) == ["manage.py no_such", "FEEDSITE_CHECK_READERS=21"]
    assert (
        len(
            refused("`feedsite account ban ann`\n`feedsite account hide ann`\n```\nfeedsite doctor --any | head\n```\n")
        )
        == 2
    )
