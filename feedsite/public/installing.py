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
from web.languages import tag_of

FRAME = ("pages.css", "members.js", "strangers.js", "icons.svg", "icon.svg")
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
    version = hashlib.sha256(msgspec.json.encode([text, told, offline_page()])).hexdigest()[:12]
    return f"const SITE = {msgspec.json.encode(told | {'version': version}).decode()};\n{text}"


@cache
def script() -> str:
    """The part of the service worker that is the same for all sites."""
    return Path(str(finders.find("feedsite/worker.js"))).read_text()


def offline_page() -> str:
    """The page without a connection, in every language, because it is kept once."""
    texts = []
    for code, _name in settings.LANGUAGES:
        with translation.override(code):
            texts.append(
                (tag_of(code), _("You're offline"), _("Connect to the internet to see this page."), _("Go home"))
            )
    return render_to_string("public/offline.html", {"texts": texts})
