"""The site as an application that people install."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from django.conf import settings
from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _

from accounts.about.colours import OWN
from accounts.about.logo import icon_url
from accounts.about.site import Site
from accounts.about.words import favicon_of, theme_of

FRAME = ("pages.css", "offline.js", "icons.svg", "icon.svg")
"""Static files that the worker keeps: those of every page."""


def manifest_of(site: Site) -> dict[str, Any]:
    """The application's manifest in the language of the request."""
    return {
        "id": "/",
        "name": site.name,
        "short_name": site.name,
        "description": site.summary,
        "start_url": "/",
        "scope": "/",
        "display": "standalone",
        "background_color": "#ffffff",
        "theme_color": site.accent or OWN,
        "icons": [
            _icon(site, "icon-192", "192x192", "any"),
            _icon(site, "icon-512", "512x512", "any"),
            _icon(site, "maskable-512", "512x512", "maskable"),
        ],
        "shortcuts": [
            {"name": name, "url": reverse(page), "icons": [_icon(site, "icon-192", "192x192", "any")]}
            for name, page in ((_("Write"), "publish"), (_("Notifications"), "notifications"), (_("Search"), "search"))
        ],
        "share_target": {
            "action": reverse("publish"),
            "method": "GET",
            "params": {"title": "shared_title", "text": "shared_text", "url": "shared_url"},
        },
    }


def _icon(site: Site, name: str, sizes: str, purpose: str) -> dict[str, str]:
    return {"src": icon_url(site.logo, name), "sizes": sizes, "type": "image/png", "purpose": purpose}


def worker_of(site: Site) -> str:
    """The service worker's script.

    It has the files to keep and a version. So another file or offline page gives another script, and browsers take it.
    """
    files = [static(f"feedsite/{name}") for name in FRAME]
    if site.logo:
        files.append(favicon_of(site))  # the offline page's logo
    if sheet := theme_of(site):
        files.append(sheet)
    text = script()
    told = {
        "name": site.name,
        "files": files,
        "offline": reverse("offline"),
        "icon": icon_url(site.logo, "icon-192"),
    }
    version = hashlib.sha256(msgspec.json.encode([text, told, _offline_pages()])).hexdigest()[:12]
    return f"const SITE = {msgspec.json.encode(told | {'version': version}).decode()};\n{text}"


@cache
def script() -> str:
    """The part of the service worker that is the same for all sites."""
    return Path(str(finders.find("feedsite/worker.js"))).read_text()


def _offline_pages() -> list[str]:
    """The page for readers without a connection, in each language. Browsers keep it in the reader's."""
    pages: list[str] = []
    for code, _name in settings.LANGUAGES:
        with translation.override(code):
            pages.append(render_to_string("public/offline.html", {"csp_nonce": ""}))
    return pages
