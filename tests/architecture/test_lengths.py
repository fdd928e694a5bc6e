"""A file over 350 lines holds one idea, which the record in docs/decisions.md says of each.

See docs/decisions.md: Files over 350 lines.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

LONG = 350
"""Lines."""
KINDS = {".py", ".js", ".css", ".html"}
WRITTEN_BY_PROGRAMS = {"migrations", "generated"}


def sources() -> Iterator[str]:
    """The files of the house that people write; tests apart."""
    found = subprocess.run(["git", "ls-files"], cwd=settings.BASE_DIR, capture_output=True, text=True, check=True)
    for name in found.stdout.splitlines():
        path = Path(name)
        if path.suffix in KINDS and path.parts[0] != "tests" and not WRITTEN_BY_PROGRAMS & set(path.parts):
            yield name


def long_files() -> set[str]:
    return {name for name in sources() if len((settings.BASE_DIR / name).read_text().splitlines()) > LONG}


def recorded() -> list[str]:
    record = (settings.BASE_DIR / "docs/decisions.md").read_text().partition("\n### Files over 350 lines\n")[2]
    return re.findall(r"`([^`]+)`", record.partition("\n### ")[0])


def test_the_record_names_each_long_file_once_and_no_other() -> None:
    assert sorted(recorded()) == sorted(long_files())
