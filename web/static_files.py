"""Static files: one script for each kind of page and one stylesheet, names with a content hash."""

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.files.storage import FileSystemStorage
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.html import format_html
from django.utils.safestring import SafeString
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.storage import CompressedManifestStaticFilesStorage

HTMX = "django_htmx/htmx-2.min.js"
COMMON = ("parts", "site", "asking", "asides", "cards", "progress", "places", "pictures", "column", "install", "hover")
MEMBERS = (
    "counting",
    "acts",
    "items",
    "composer",
    "drafts",
    "threads",
    "writing",
    "draft_list",
    "over",
    "menus",
    "slots",
    "live",
    "complete",
    "emoji",
    "polls",
    "keys",
)
SCRIPTS = {"strangers": COMMON, "members": COMMON + MEMBERS}
"""The scripts of pages, with their modules in order after htmx. Modules share their top-level names."""
UNSENT = re.compile(r"^(?:\s+|//.*\n|/\*(?s:.*?)\*/\s*\n)+", re.MULTILINE)
"""Lines of comments, indents and empty lines. Browsers load a tenth less without them."""


def made_files() -> dict[str, list[str]]:
    """The stylesheet of pages, and their scripts in each language, each with its parts in order."""
    files = {"feedsite/pages.css": ["feedsite/site.css"]}
    for script, modules in SCRIPTS.items():
        parts = [HTMX, *(f"feedsite/{module}.js" for module in modules)]
        files |= {f"feedsite/{script}.{language}.js": parts for language, _name in settings.LANGUAGES}
    return files


class ScriptFinder(finders.BaseFinder):
    """Finds and makes the scripts and the stylesheet of pages: at each request in development and tests, else once."""

    folder = Path(settings.DATA_DIR, "scripts")

    def find(self, path: str, find_all: bool = False, **options: Any) -> str | list[str]:  # type: ignore[override]  # Django's name
        """The path of a file, if it is one of `made_files`."""
        if path not in made_files():
            return []
        found = str(self.make(path))
        return [found] if find_all else found

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, FileSystemStorage]]:
        for path in made_files():
            self.make(path)
            yield path, FileSystemStorage(self.folder)

    def make(self, path: str) -> Path:
        """Write a file, unless it is up to date."""
        texts = [Path(str(finders.find(module))).read_text() for module in made_files()[path]]
        text = UNSENT.sub("", "\n".join(texts))
        if path.endswith(".js"):
            text = f'"use strict";\nconst PARTS = {json.dumps(parts_of(path))};\n{text}'
        made = self.folder / path
        if not made.exists() or made.read_text() != text:
            made.parent.mkdir(parents=True, exist_ok=True)
            written = made.with_suffix(f".{os.getpid()}")
            written.write_text(text)
            written.replace(made)
        return made


def parts_of(path: str) -> str:
    """The HTML that only scripts show, in the language of a script."""
    script, language, _end = Path(path).name.split(".")
    with translation.override(language):
        return render_to_string("_parts.html", {"is_member": script == "members", "icon": bare_icon})


def bare_icon(name: str) -> SafeString:
    """An icon without the address of its file, which is known only when all files have their hash (parts.js)."""
    return format_html('<svg class="icon" aria-hidden="true"><use href="#{}"/></svg>', name)


class StaticStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # it has no types
    """The storage of static files. Gzip only: Brotli would add half a minute to the first start."""

    def create_compressor(self, **options: Any) -> Any:
        """A compressor for gzip only."""
        return super().create_compressor(use_brotli=False, **options)


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # it has no types
    """Sends static files, also those collected after the start, because two versions may share a port."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.directories.append((f"{Path(settings.STATIC_ROOT).absolute()}/", self.static_prefix))

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer with a file, if any."""
        path = request.path_info
        if path not in self.files and path.startswith(self.static_prefix) and (found := self.find_file(path)):
            self.files[path] = found
        response: HttpResponseBase = super().__call__(request)
        return response
