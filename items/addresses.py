"""The addresses of this site's pages, as others name them."""

from urllib.parse import urlsplit

from django.conf import settings

from web.rest import parse_id

ITEM = "/items/"


def own_path(address: str) -> str:
    """The path of an address of this site; nothing for any other."""
    try:
        parts, own = urlsplit(address), urlsplit(settings.SITE_URL)
    except ValueError:
        return ""
    return parts.path if parts.netloc.lower() == own.netloc.lower() else ""


def item_id_at(address: str) -> int | None:
    """The id in the address of an item's page of this site; None for any other address."""
    path = own_path(address)
    return parse_id(path.removeprefix(ITEM)) if path.startswith(ITEM) else None
