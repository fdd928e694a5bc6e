"""The site's own words, logo and colour on its pages."""

from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import format_html, urlize
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import normalize_newlines

from accounts.about.logo import icon_url
from accounts.about.site import Site, last_known
from accounts.avatars import avatar_sources
from media.objects import address_from_facts


def last_known_site() -> Site:
    """The site without a query, for error pages."""
    return last_known()


def paragraphs(text: str) -> SafeString:
    """Text as escaped HTML paragraphs with links."""
    parts = [part.strip() for part in normalize_newlines(text).split("\n\n")]
    lines = (urlize(part, nofollow=True, autoescape=True).replace("\n", "<br>") for part in parts if part)
    return mark_safe("".join(f"<p>{part}</p>" for part in lines))  # noqa: S308 (urlize escapes)


def headed_paragraphs(text: str) -> SafeString:
    """Like `paragraphs`. A line that begins with # is a heading."""
    shown: list[str] = []
    for part in normalize_newlines(text).split("\n\n"):
        first, _newline, rest = part.strip().partition("\n")
        if first.startswith("# "):
            shown.append(format_html("<h2>{}</h2>", first[2:]))
            part = rest
        shown.append(paragraphs(part))
    return mark_safe("".join(shown))  # noqa: S308 (both parts escape)


def logo_of(site: Site) -> str:
    """Address of an uploaded logo, or ""."""
    return address_from_facts(site.logo) if site.logo else ""


def logo_sources(site: Site, size: int) -> SafeString:
    """`src` and `srcset` of an uploaded logo that is drawn `size` pixels wide."""
    return avatar_sources(logo_of(site), size)


def favicon_of(site: Site) -> str:
    """Address of the icon in browsers' tabs."""
    return icon_url(site.logo, "icon-192") if site.logo else static("feedsite/icon.svg")


def touch_icon_of(site: Site) -> str:
    """Address of the icon for home screens."""
    return icon_url(site.logo, "apple-touch-icon")


def theme_of(site: Site) -> str:
    """Address of the accent's stylesheet, or ""."""
    return reverse("theme", args=[site.accent[1:].lower()]) if site.accent else ""
