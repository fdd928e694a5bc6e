"""A user's public posts as an Atom feed. Texts are escaped."""

import re
from collections.abc import Sequence

from django.contrib.auth.models import AnonymousUser
from django.utils.feedgenerator import Atom1Feed, Enclosure
from django.utils.html import format_html, linebreaks
from django.utils.translation import gettext as _

from accounts.models import User
from items.bodies import ItemBody
from items.pages.reading import excerpt
from items.profiles.profile import profile_page
from media.files import TYPES
from media.objects import MediaObject

UNSPEAKABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
ENTRIES = 20
TITLE_LETTERS, QUOTED_LETTERS = 80, 500


def entries_of(person: User) -> list[ItemBody]:
    """The user's newest posts, as strangers see them."""
    page = profile_page(person, AnonymousUser(), limit=ENTRIES)
    return page.items


def feed_of(person: User, items: Sequence[ItemBody], site: str, path: str) -> str:
    """The Atom feed of these posts. `site` is the prefix of absolute addresses, `path` the feed's path."""
    feed = Atom1Feed(
        title=clean(f"{person.name} (@{person.username})"),
        link=f"{site}/@{person.username}",
        description=clean(person.bio),
        feed_url=f"{site}{path}",
        author_name=clean(person.name),
        author_link=f"{site}/@{person.username}",
        feed_guid=f"{site}/@{person.username}",
    )
    for item in items:
        shown = item.shown
        address = f"{site}/items/{item.id}"
        feed.add_item(
            title=clean(excerpt(shown.words, TITLE_LETTERS)) or _("A post"),
            link=address,
            description=linebreaks(clean(shown.warning or shown.text or shown.words), autoescape=True)
            + _quoted(shown, site),
            unique_id=address,
            author_name=clean(shown.sender.name),
            author_link=f"{site}/@{shown.sender.username}",
            pubdate=item.created_at,
            updateddate=max(shown.modified_at, item.created_at),
            enclosures=[] if shown.is_veiled else [_enclosure(medium, site) for medium in shown.media],
        )
    text: str = feed.writeString("utf-8")
    return text


def _quoted(item: ItemBody, site: str) -> str:
    quoted = item.quote.item if item.quote and not item.warning else None
    if quoted is None:
        return ""
    address, name = f"{site}/items/{quoted.id}", quoted.sender.username
    words = clean(excerpt(quoted.words, QUOTED_LETTERS))
    return format_html('<blockquote><p><a href="{}">@{}</a>: {}</p></blockquote>', address, name, words)


def _enclosure(medium: MediaObject, site: str) -> Enclosure:
    url = medium.url if "://" in medium.url else f"{site}{medium.url}"
    return Enclosure(url, "0", TYPES.get(medium.url.rpartition(".")[2], "application/octet-stream"))


def clean(text: str) -> str:
    """The text without characters that XML forbids."""
    return UNSPEAKABLE.sub("", text)
