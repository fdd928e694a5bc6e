"""The files by which strangers take part, and the workflow of hosted checks."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

import manage

ROOT = Path(settings.BASE_DIR)
GITHUB = ROOT / ".github"


def test_the_workflow_runs_every_check_on_every_python() -> None:
    text = (GITHUB / "workflows" / "checks.yml").read_text()
    workflow = yaml.safe_load(text)
    (job,) = workflow["jobs"].values()
    oldest, newest = manage.PYTHONS
    assert job["strategy"]["matrix"]["python"] == [f"3.{minor}" for minor in range(oldest[1], newest[1] + 1)]
    assert job["steps"][-1] == {"run": ".ci/run ${{ github.event_name == 'schedule' && '--all' || '' }}"}
    assert workflow[True]["schedule"], "`on`, which YAML 1.1 takes for true"
    checkout: dict[str, Any] = job["steps"][0]
    assert checkout["with"]["fetch-depth"] == 0, "tests run the first version"
    assert "://" not in text


@pytest.mark.parametrize("name", ["bug", "wish"])
def test_a_template_of_issues_has_what_a_list_of_them_shows(name: str) -> None:
    heading = (GITHUB / "ISSUE_TEMPLATE" / f"{name}.md").read_text().split("---\n")[1]
    assert yaml.safe_load(heading).keys() == {"name", "about", "labels"}


@pytest.mark.parametrize(
    "name", ["CODE_OF_CONDUCT.md", ".github/pull_request_template.md", "CONTRIBUTING.md", "SECURITY.md"]
)
def test_links_lead_to_files(name: str) -> None:
    page = ROOT / name
    for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / link).exists(), link


def test_the_project_takes_the_pythons_that_manage_takes() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert 'requires-python = ">={}.{}"'.format(*manage.PYTHONS[0]) in text
    assert "FROM python:3.13-slim" in (ROOT / "Dockerfile").read_text()
    assert manage.PYTHONS[0] <= (3, 13) <= manage.PYTHONS[1]
