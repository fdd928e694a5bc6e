"""An older version of the site, run from its own sources beside the one of now."""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from django.conf import settings
from packaging.requirements import Requirement

ROOT = Path(settings.BASE_DIR)
FIRST = ("v0.1.0", "d862f88d50cf053105546bb39003256adc1a61b8")
"""The tag of version 0.1.0, and its commit, for a clone without tags."""
RUN = "import sys, manage; manage.run_command(['manage.py', *sys.argv[1:]])"
"""A command of a version, in whatever environment runs it."""
INSTALL = "import manage; manage.install(manage.RUNTIME_LOCK)"


class Version:
    """The sources of a version, and the Python that runs them."""

    def __init__(self, tree: Path, python: str) -> None:
        self.tree = tree
        self.python = python

    def command(self, *arguments: str) -> list[str]:
        return [self.python, "-c", RUN, *arguments]


def version_of_now() -> Version:
    return Version(ROOT, sys.executable)


def version(folder: Path, names: tuple[str, ...] = FIRST) -> Version:
    """The first of these commits that the clone has, unpacked into the folder. Skips where it has none."""
    for name in names:
        packed = subprocess.run(["git", "archive", name], cwd=ROOT, capture_output=True, check=False)
        if packed.returncode == 0:
            folder.mkdir(parents=True)
            subprocess.run(["tar", "x", "-C", str(folder)], input=packed.stdout, check=True)
            return Version(folder, python_for(folder))
    pytest.skip(f"this clone has no {names[0]}: its history is cut off")


def python_for(tree: Path) -> str:
    """This Python where it has what the lock of the version names, else one of an environment of that lock."""
    lines = re.findall(r"^(\w[^\\\n]*==[^\\\n]*)", (tree / "requirements.lock").read_text(), re.MULTILINE)
    if all(is_installed(Requirement(line)) for line in lines):
        return sys.executable
    venv = tree.with_name(f"{tree.name}-venv")
    environ = os.environ | {"FEEDSITE_VENV": str(venv)}
    base = getattr(sys, "_base_executable", sys.executable)
    subprocess.run([base, "-c", INSTALL], cwd=tree, env=environ, check=True)
    return str(venv / "bin" / "python")


def is_installed(pinned: Requirement) -> bool:
    """Whether this environment has it, or it is for other machines."""
    if pinned.marker is not None and not pinned.marker.evaluate():
        return True
    try:
        return pinned.specifier.contains(metadata.version(pinned.name))
    except metadata.PackageNotFoundError:
        return False
