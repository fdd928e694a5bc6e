"""How the site's own words and colours stand on its pages."""

from django.urls import reverse
from django.utils.html import urlize
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import normalize_newlines

from accounts.about.logo import logo_url
from accounts.about.site import Site, known


def known_site() -> Site:
    """The site, for pages of errors, which are drawn without context processors and ask no server."""
    return known()


def paragraphs(text: str) -> SafeString:
    """A text as paragraphs, parted by empty lines, in which web and mail addresses are links. All else is escaped."""
    parts = [part.strip() for part in normalize_newlines(text).split("\n\n")]
    lines = (urlize(part, nofollow=True, autoescape=True).replace("\n", "<br>") for part in parts if part)
    return mark_safe("".join(f"<p>{part}</p>" for part in lines))  # noqa: S308 (urlize escapes)


def logo_of(site: Site) -> str:
    """The address of a logo that was given; empty where the site has its own icon."""
    return logo_url(site.logo) if site.logo else ""


def theme_of(site: Site) -> str:
    """The address of the stylesheet of the accent colour; empty where the site has its own colour."""
    return reverse("theme", args=[site.accent[1:].lower()]) if site.accent else ""
