"""Static files: one script for each kind of page and one stylesheet, names with a content hash."""

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
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.storage import CompressedManifestStaticFilesStorage

HTMX = "django_htmx/htmx-2.min.js"
COMMON = ("site", "asking", "asides", "cards", "progress", "places", "pictures", "column", "install", "hover")
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
MODULES = {
    "feedsite/strangers.js": [HTMX, *(f"feedsite/{name}.js" for name in COMMON)],
    "feedsite/members.js": [HTMX, *(f"feedsite/{name}.js" for name in COMMON + MEMBERS)],
    "feedsite/pages.css": ["feedsite/site.css"],
}
"""The scripts and the stylesheet of pages, each with its modules in order. Scripts share their top-level names."""
UNSENT = re.compile(r"^(?:\s+|//.*\n|/\*(?s:.*?)\*/\s*\n)+", re.MULTILINE)
"""Lines of comments, indents and empty lines. Browsers load a tenth less without them."""


class ScriptFinder(finders.BaseFinder):
    """Finds and makes the scripts and the stylesheet of pages: at each request in development and tests, else once."""

    folder = Path(settings.DATA_DIR, "scripts")

    def find(self, path: str, find_all: bool = False, **options: Any) -> str | list[str]:  # type: ignore[override]  # Django's name
        """The path of a file, if it is one of `MODULES`."""
        if path not in MODULES:
            return []
        found = str(self.make(path))
        return [found] if find_all else found

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, FileSystemStorage]]:
        for path in MODULES:
            self.make(path)
            yield path, FileSystemStorage(self.folder)

    def make(self, path: str) -> Path:
        """Write a file, unless it is up to date."""
        texts = [Path(str(finders.find(module))).read_text() for module in MODULES[path]]
        text = UNSENT.sub("", "\n".join(texts))
        if path.endswith(".js"):
            text = f'"use strict";\n{text}'
        made = self.folder / path
        if not made.exists() or made.read_text() != text:
            made.parent.mkdir(parents=True, exist_ok=True)
            written = made.with_suffix(f".{os.getpid()}")
            written.write_text(text)
            written.replace(made)
        return made


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
