"""The files, and the names in them, that the documents send a reader to are there."""

import re
import subprocess
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
PAGES = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
NAMED = re.compile(r"`(?P<path>[\w./-]+\.(?:py|js|html|css|proto|toml|md))(?::[ ]?(?P<names>[\w.]+))?`")
ABSENT = frozenset({"utils.py", "helpers.py"})
"""Files that docs/layout.md names because there are none."""


def files() -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


FILES = files()


def lies(text: str) -> list[str]:
    """The names in a page that lead nowhere. A file may be named by the end of its path."""
    found = []
    for match in NAMED.finditer(text):
        path, names = match["path"], match["names"] or ""
        if path in ABSENT:
            continue
        sources = [(ROOT / file).read_text() for file in FILES if f"/{file}".endswith(f"/{path}")]
        if not any(all(re.search(rf"\b{name}\b", source) for name in names.split(".")) for source in sources):
            found.append(match[0])
    return found


@pytest.mark.parametrize("page", PAGES)
def test_documents_name_what_is_there(page: str) -> None:
    assert lies((ROOT / page).read_text()) == []


def test_names_that_lead_nowhere_are_found() -> None:
    text = "`storage/nowhere.py`, `storage/events.py: no_such_name`, `storage/events.py: Gap`, `events.py`"
    assert lies(text) == ["`storage/nowhere.py`", "`storage/events.py: no_such_name`"]
