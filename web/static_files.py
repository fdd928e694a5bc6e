"""How static files are kept and served: one script for each kind of page, files named by their content, and compressed
once.
"""

import os
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
COMMON = ("site", "asking", "asides", "cards", "progress", "places", "pictures", "column")
MEMBERS = ("acts", "items", "composer", "drafts", "writing", "menus", "slots", "live", "complete", "keys")
MODULES = {"feedsite/strangers.js": COMMON, "feedsite/members.js": COMMON + MEMBERS}
"""The scripts of the pages, and the modules of each in their order, which share their top-level names."""


class ScriptFinder(finders.BaseFinder):
    """Finds the scripts of `MODULES`, which it makes by putting htmx and the modules one after the other: in
    development and tests at each request, else when static files are collected.
    """

    folder = Path(settings.DATA_DIR, "scripts")

    def find(self, path: str, find_all: bool = False, **options: Any) -> str | list[str]:  # type: ignore[override]  # Django's name
        """The file of a script; nothing for other paths."""
        if path not in MODULES:
            return []
        found = str(self.make(path))
        return [found] if find_all else found

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, FileSystemStorage]]:
        """All scripts."""
        for path in MODULES:
            self.make(path)
            yield path, FileSystemStorage(self.folder)

    def make(self, path: str) -> Path:
        """Write a script, unless it is there as its modules are now."""
        modules = [HTMX, *(f"feedsite/{name}.js" for name in MODULES[path])]
        texts = [Path(str(finders.find(module))).read_text() for module in modules]
        text = "\n".join(['"use strict";', *texts])
        made = self.folder / path
        if not made.exists() or made.read_text() != text:
            made.parent.mkdir(parents=True, exist_ok=True)
            written = made.with_suffix(f".{os.getpid()}")
            written.write_text(text)
            written.replace(made)
        return made


class StaticStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # it has no types
    """By gzip only. Where Brotli happens to be installed, as among the tools for development, it would take half a
    minute of the first start; who wants it lets the proxy do it.
    """

    def create_compressor(self, **options: Any) -> Any:
        """The compressor, by gzip only."""
        return super().create_compressor(use_brotli=False, **options)


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # it has no types
    """Serves also what was collected after the start of this process: while two versions share a port, each is asked
    for files of the other's pages.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.directories.append((f"{Path(settings.STATIC_ROOT).absolute()}/", self.static_prefix))

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer with the file of this path, if there is one."""
        path = request.path_info
        if path not in self.files and path.startswith(self.static_prefix) and (found := self.find_file(path)):
            self.files[path] = found
        response: HttpResponseBase = super().__call__(request)
        return response
