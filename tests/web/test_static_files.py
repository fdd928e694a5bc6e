import json
from contextlib import closing
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory, override_settings

from web.static_files import StaticFiles, made_files

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


@pytest.mark.parametrize("path", made_files())
def test_pages_load_no_comments(path: str) -> None:
    lines = Path(str(finders.find(path))).read_text().splitlines()
    sources = [Path(str(finders.find(module))).read_text().splitlines() for module in made_files()[path]]
    lines = [line for line in lines if not line.startswith("const PARTS = ")]
    assert not [line for line in lines if not line or line.startswith((" ", "//", "/*"))]
    assert set(lines) <= {'"use strict";', *(line.strip() for source in sources for line in source)}
    assert len(lines) > 0.7 * sum(map(len, sources)), "nothing else is left out"


@pytest.mark.parametrize(
    ("script", "language", "words"), [("strangers", "en", "Close"), ("members", "zh-hans", "关闭")]
)
def test_a_script_has_the_parts_that_it_shows(script: str, language: str, words: str) -> None:
    begin = Path(str(finders.find(f"feedsite/{script}.{language}.js"))).read_text().splitlines()[1]
    parts = json.loads(begin.removeprefix("const PARTS = ").removesuffix(";"))
    assert f'title="{words}"' in parts
    assert '<use href="#close"/>' in parts, "the page knows the address of icons"
    assert ('id="logged-out"' in parts) == (script == "members")
