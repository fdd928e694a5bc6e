"""`upgrade --to` of a site in a clone of this tree: to a version that works, and to three that do not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from runtime.management.commands.check_all import clean_environ
from tests.support.clusters import free_ports
from tests.support.whole_sites import Site

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

OURS = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org"}
OURS |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}


class Clone:
    """A site from a clone, and the repository that it fetches from."""

    def __init__(self, folder: Path, port: int) -> None:
        self.repository, self.tree = folder / "repository", folder / "tree"
        for source, to in ((settings.BASE_DIR, self.repository), (self.repository, self.tree)):
            made = subprocess.run(["git", "clone", "--quiet", source, to], capture_output=True, text=True, check=False)
            if made.returncode:
                pytest.skip(f"this is no clone: {made.stderr.strip()}")
        self.first = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=self.repository, text=True).strip()
        self.data = folder / "var"
        self.environ = clean_environ(self.data) | {"FEEDSITE_VENV": sys.prefix, "PORT": str(port)}

    def release(self, version: str, **files: str) -> None:
        """Tag a version that differs from this tree in some files."""
        subprocess.run(["git", "checkout", "--quiet", self.first, "--", "."], cwd=self.repository, check=True)
        for name, text in ({"runtime/version.py": f'VERSION = "{version}"\n'} | files).items():
            (self.repository / name).write_text(text)
        for words in (["commit", "--quiet", "--all", "--message", version], ["tag", f"v{version}"]):
            subprocess.run(["git", *words], cwd=self.repository, env=os.environ | OURS, check=True)

    def manage(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "manage.py", *words]
        return subprocess.run(command, cwd=self.tree, env=self.environ, capture_output=True, text=True, check=False)

    def versions(self) -> set[str]:
        """Those of the running programs."""
        return {each["version"] for each in json.loads(self.manage("status", "--json").stdout)["programs"]}


def test_a_site_goes_to_a_version_and_back_from_one_that_fails(tmp_path: Path) -> None:
    port = free_ports()[0]
    clone = Clone(tmp_path, port)
    site = Site(clone.data, port, {"FEEDSITE_VENV": sys.prefix}, tree=clone.tree)
    try:
        site.wait_until_up()
        for number, files, fails in (
            ("9.0.1", {}, ""),
            ("9.0.2", {"feedsite/wsgi.py": "raise SystemExit('no')\n"}, "the site does not load"),
            ("9.0.4", {"templates/base.html": "{{ nothing.nothing.nothing }}"}, "web page: "),
            ("9.0.3", {"runtime/older_database.py": "raise SystemExit('no')\n"}, "upgrade"),
        ):
            clone.release(number, **files)
            said = clone.manage("upgrade", "--to", f"v{number}")
            print(said.stdout, said.stderr)
            assert said.returncode == bool(fails)
            assert fails in said.stdout
            assert clone.versions() == {"9.0.1"}
            assert site.get("/about")[0] == 200
        assert "There is no version v9.9" in clone.manage("upgrade", "--to", "v9.9").stderr
        (clone.tree / "README.md").write_text("mine")
        assert "Files of the site were changed" in clone.manage("upgrade", "--to", "v9.0.2").stderr
        assert len(list((clone.data / "backups").iterdir())) == 3, "the last fails before its backup"
    finally:
        site.end()
        print(site.printed[-5_000:])
