from django.http import HttpResponse
from rest_framework.request import Request

from accounts.callers import reader_of
from clientapi.errors import ClientView, OpenView, caller_of
from clientapi.paging import page_params, paged_answer
from clientapi.params import Params
from clientapi.statuses import timelines
from clientapi.statuses.presenting import statuses
from items.likes.saved import SavedKind
from items.tags.tags import ExtraTags
from relations.lists import own_list
from web.hashtags import canonical_tag
from web.rest import FeedResponse

TAGS = 4
"""Maximum extra tags of one kind in a call, as in Mastodon. Further ones are ignored."""


class HomeView(ClientView):
    scopes = "statuses"

    def get(self, request: Request) -> HttpResponse:
        """List home, newest first."""
        reader = caller_of(request)
        page, sources = timelines.home(reader, page_params(Params(request)))
        headers = {"X-Feed-Source": ",".join(sources)}
        return paged_answer(
            request, statuses(page.items, reader), next_id=page.next_id, prev_id=page.prev_id, headers=headers
        )


class ListView(ClientView):
    """The timeline of one of the caller's lists."""

    scopes = "lists"

    def get(self, request: Request, list_id: int) -> HttpResponse:
        """List the members' items."""
        reader = caller_of(request)
        page, _sources = timelines.home(reader, page_params(Params(request)), own_list(reader, list_id).id)
        return paged_answer(request, statuses(page.items, reader), next_id=page.next_id, prev_id=page.prev_id)


class PublicView(OpenView):
    """All public posts, which are all local."""

    scopes = "statuses"

    def get(self, request: Request) -> HttpResponse:
        """List public posts, newest first. Nothing if only remote ones are asked for."""
        reader, params = reader_of(request), Params(request)
        asked, only_media = page_params(params), params.flag("only_media")
        is_remote, _is_local = params.flag("remote"), params.flag("local")
        if is_remote:
            return FeedResponse([])
        page = timelines.public(reader, asked, only_media=only_media)
        return paged_answer(request, statuses(page.items, reader), next_id=page.next_id, prev_id=page.prev_id)


class TagView(OpenView):
    scopes = "statuses"

    def get(self, request: Request, tag: str) -> HttpResponse:
        """List the items, newest first."""
        reader, params = reader_of(request), Params(request)
        asked = page_params(params)
        if params.flag("remote"):
            return FeedResponse([])
        besides = ExtraTags(*(_tags(params, name) for name in ExtraTags._fields))
        page = timelines.tagged(tag, besides, reader, asked, only_media=params.flag("only_media"))
        return paged_answer(request, statuses(page.items, reader), next_id=page.next_id, prev_id=page.prev_id)


def _tags(params: Params, name: str) -> tuple[str, ...]:
    """Hashtags of a parameter, in canonical form. Invalid words are ignored, because no item has them."""
    tags = (canonical_tag(word.removeprefix("#")) for word in params.words(name)[:TAGS])
    return tuple(dict.fromkeys(tag for tag in tags if tag))


class SavedStatusesView(ClientView):
    """The caller's bookmarks or likes."""

    kept: SavedKind

    def get(self, request: Request) -> HttpResponse:
        """List the items, newest bookmark or like first."""
        reader = caller_of(request)
        page = timelines.saved_page(reader, self.kept, page_params(Params(request)))
        return paged_answer(request, statuses(page.items, reader), next_id=page.next_id, prev_id=page.prev_id)


class BookmarksView(SavedStatusesView):
    scopes = "bookmarks"
    kept = "bookmark"


class FavouritesView(SavedStatusesView):
    scopes = "favourites"
    kept = "like"
