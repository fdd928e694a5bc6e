"""The sources that tests of the architecture read."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings


def sources() -> Iterator[str]:
    """The modules that people write, by their paths; tests apart."""
    found = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=settings.BASE_DIR, capture_output=True, text=True, check=True
    )
    for name in found.stdout.splitlines():
        if not {"tests", "migrations", "generated"} & set(Path(name).parts):
            yield name
