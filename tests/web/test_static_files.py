from contextlib import closing
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory, override_settings

from web.static_files import MODULES, StaticFiles

NOT_FOUND = (404, b"not found")

pytestmark = pytest.mark.django_db  # the end of an answer checks the connections


def nothing(request: HttpRequest) -> HttpResponse:
    return HttpResponse("not found", status=404)


def answered(served: StaticFiles, path: str) -> tuple[int, bytes]:
    with closing(served(RequestFactory().get(path))) as answer:
        return answer.status_code, b"".join(answer)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "static"
    (path / "feedsite").mkdir(parents=True)
    (path / "feedsite" / "site.1.css").write_text("a {}")
    (tmp_path / "secret_key").write_text("hidden")
    return path


def test_a_file_that_came_after_the_start_is_served(folder: Path) -> None:
    """Two versions share a port in an upgrade."""
    with override_settings(STATIC_ROOT=folder):
        served = StaticFiles(nothing)
    assert answered(served, "/static/feedsite/site.1.css") == (200, b"a {}")
    assert answered(served, "/static/feedsite/site.2.css") == NOT_FOUND
    (folder / "feedsite" / "site.2.css").write_text("b {}")
    assert answered(served, "/static/feedsite/site.2.css") == (200, b"b {}")


@pytest.mark.parametrize("path", ["/static/../secret_key", "/static//etc/passwd", "/static/feedsite", "/static/"])
def test_nothing_else_is(folder: Path, path: str) -> None:
    with override_settings(STATIC_ROOT=folder):
        served = StaticFiles(nothing)
    assert answered(served, path) == NOT_FOUND


@pytest.mark.parametrize("path", MODULES)
def test_pages_load_no_comments(path: str) -> None:
    lines = Path(str(finders.find(path))).read_text().splitlines()
    sources = [Path(str(finders.find(module))).read_text().splitlines() for module in MODULES[path]]
    assert not [line for line in lines if not line or line.startswith((" ", "//", "/*"))]
    assert set(lines) <= {'"use strict";', *(line.strip() for source in sources for line in source)}
    assert len(lines) > 0.7 * sum(map(len, sources)), "nothing else is left out"
