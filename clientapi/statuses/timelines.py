"""Pages of items by Mastodon's cursors.

Down, `max_id` is the site's `last_id`. Up, `min_id` asks for the items directly above an id, as the way down shows
them. The search is bounded, so the page may be short.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from accounts.models import User
from clientapi.paging import PageParams
from clientapi.statuses.presenting import Reader
from items.bodies import ItemBody
from items.likes.saved import SavedKind, page_with_bounds
from items.listing import ItemPage
from items.newest import newest_page
from items.profiles.pins import pinned_items
from items.profiles.profile import all_page, pictured_page, profile_page, tagged_page
from items.quotes import quotes_page
from items.tags.tags import ExtraTags, tags_page
from timeline.above import page_above
from timeline.home import HomePage, home_page
from timeline.lists import list_page
from web.hashtags import canonical_tag


class TimelinePage(NamedTuple):
    """A page of items, newest first, and the ids of its Link."""

    items: list[ItemBody]
    next_id: int | str | None
    prev_id: int | str | None


NONE = TimelinePage([], None, None)


def trimmed_page(page: ItemPage | HomePage, asked: PageParams) -> TimelinePage:
    """The part of a page above `since_id`, as the request asks."""
    above = asked.above
    items = [item for item in page.items if int(item.id) > above] if above else page.items
    is_cut = len(items) < len(page.items) or (page.last_id is not None and int(page.last_id) <= above)
    next_id = page.last_id if page.has_more and not is_cut else None
    return TimelinePage(items, next_id, items[0].id if items else None)


# --- Home and lists --------------------------------------------------------------------------------------
def home(reader: User, asked: PageParams, list_id: int = 0) -> tuple[TimelinePage, list[str]]:
    """A page of home or a list, and what served it."""
    if asked.min_id is not None:
        page = page_above(reader, min_id=asked.min_id, max_id=asked.max_id, limit=asked.limit, list_id=list_id)
        lowest = page.items[-1].id if page.items else asked.min_id + 1
        prev_id = page.last_id if page.last_id is not None else (page.items[0].id if page.items else None)
        return TimelinePage(page.items, lowest, prev_id), page.sources
    at: dict[str, Any] = {"last_id": asked.max_id, "limit": asked.limit}
    page = list_page(reader, list_id, **at) if list_id else home_page(reader, **at)
    return trimmed_page(page, asked), page.sources


# --- Other lists -----------------------------------------------------------------------------------------
def filtered_page(
    read: Callable[..., ItemPage], asked: PageParams, keep: Callable[[ItemBody], bool] = lambda item: True
) -> TimelinePage:
    """A page of a list that can be read upwards and downwards, filtered by `keep`."""
    if asked.min_id is None:
        page = trimmed_page(read(last_id=asked.max_id, limit=asked.limit), asked)
        return page._replace(items=[item for item in page.items if keep(item)])
    up = read(min_id=asked.min_id, last_id=asked.max_id, limit=asked.limit)
    items = [item for item in up.items if keep(item)]
    return TimelinePage(items, up.items[-1].id if up.items else asked.min_id + 1, up.last_id)


def public(reader: Reader, asked: PageParams, *, only_media: bool = False) -> TimelinePage:
    """A page of public posts, newest first."""
    return filtered_page(lambda **at: newest_page(reader, **at), asked, lambda item: bool(item.media) or not only_media)


def tagged(
    tag: str, besides: ExtraTags, reader: Reader, asked: PageParams, *, only_media: bool = False
) -> TimelinePage:
    """A page of the items with a hashtag."""
    canonical = canonical_tag(tag)
    if canonical is None:
        return NONE
    read = partial(tags_page, canonical, besides, reader)
    return filtered_page(read, asked, lambda item: bool(item.media) or not only_media)


class Kinds(NamedTuple):
    """Which of an account's statuses are asked for."""

    only_media: bool = False
    with_replies: bool = True
    with_reposts: bool = True
    tag: str = ""

    def keeps(self, item: ItemBody) -> bool:
        """Whether an item is wanted."""
        if item.repost_of is not None:
            return self.with_reposts and not self.only_media
        return (self.with_replies or item.reply_to is None) and (bool(item.media) or not self.only_media)


def of_account(owner: User, reader: Reader, asked: PageParams, kinds: Kinds) -> TimelinePage:
    """A page of the items of an account."""
    if kinds.tag:
        tag = canonical_tag(kinds.tag)
        return filtered_page(lambda **at: tagged_page(owner, tag, reader, **at), asked, kinds.keeps) if tag else NONE
    read = pictured_page if kinds.only_media else all_page if kinds.with_replies else profile_page
    return filtered_page(lambda **at: read(owner, reader, **at), asked, kinds.keeps)


def quotes(item: ItemBody, reader: Reader, asked: PageParams) -> TimelinePage:
    """A page of the quotes of an item."""
    return filtered_page(lambda **at: quotes_page(item, reader, **at), asked)


def pinned(owner: User, reader: Reader, asked: PageParams) -> TimelinePage:
    """A page of pinned posts, newest pin first.

    If a cursor is the id of a pinned post it stands for its place in this order, else ids are compared.
    """
    every = pinned_items(owner, reader)
    places = {int(item.id): place for place, item in enumerate(every)}
    items = every
    if asked.max_id is not None:
        place = places.get(asked.max_id)
        items = [one for one in every if int(one.id) < asked.max_id] if place is None else every[place + 1 :]
    if asked.above:
        place = places.get(asked.above, len(every))
        items = [
            one for one in items if places[int(one.id)] < place and (place < len(every) or int(one.id) > asked.above)
        ]
    page = items[-asked.limit :] if asked.goes_up else items[: asked.limit]
    if not page:
        return NONE
    has_more = bool(every[places[int(page[-1].id)] + 1 :]) if asked.goes_up else page[-1] is not items[-1]
    return TimelinePage(page, page[-1].id if has_more else None, page[0].id)


def saved_page(reader: User, kind: SavedKind, asked: PageParams) -> TimelinePage:
    """A page of bookmarks or likes. The Link has the ids of these, not of items."""
    page = page_with_bounds(
        reader, kind, last_id=asked.max_id, since_id=asked.since_id or 0, min_id=asked.min_id, limit=asked.limit
    )
    return TimelinePage(page.items, *asked.link_ids(page.newest_id, page.oldest_id, page.last_id, page.has_more))
