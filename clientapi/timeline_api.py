"""Timelines over HTTP: home through the site's own page, lists, hashtags, and all public posts."""

from django.http import HttpResponse
from rest_framework.request import Request

from accounts.api import reader_of
from clientapi import timelines
from clientapi.errors import ClientView, OpenView, caller_of
from clientapi.paging import answer, wanted
from clientapi.params import Params
from clientapi.presenting import statuses
from items.kept import Kept
from items.tags import Besides
from relations.list_api import list_or_404
from web.hashtags import canonical_tag
from web.rest import FeedResponse

TAGS = 4
"""Tags of one kind that a page of a hashtag may ask for besides, as in Mastodon; further ones are passed over."""


class HomeView(ClientView):
    """The caller's home, over HTTP."""

    def get(self, request: Request) -> HttpResponse:
        """Items of the caller and of followed users, newest first."""
        reader = caller_of(request)
        page, sources = timelines.home(reader, wanted(Params(request)))
        headers = {"X-Feed-Source": ",".join(sources)}
        return answer(
            request, statuses(page.items, reader), next_id=page.next_id, prev_id=page.prev_id, headers=headers
        )


class ListView(ClientView):
    """The timeline of one of the caller's lists, over HTTP."""

    def get(self, request: Request, list_id: str) -> HttpResponse:
        """Items of the members of a list, newest first."""
        reader = caller_of(request)
        page, _sources = timelines.home(reader, wanted(Params(request)), list_or_404(list_id, reader).id)
        return answer(request, statuses(page.items, reader), next_id=page.next_id, prev_id=page.prev_id)


class PublicView(OpenView):
    """All public posts, over HTTP. The site is one server: what is local is all."""

    def get(self, request: Request) -> HttpResponse:
        """Public posts, newest first; nothing where only those of other servers are asked for."""
        reader, params = reader_of(request), Params(request)
        asked, only_media = wanted(params), params.flag("only_media")
        is_remote, _is_local = params.flag("remote"), params.flag("local")
        if is_remote:
            return FeedResponse([])
        page = timelines.public(reader, asked, only_media=only_media)
        return answer(request, statuses(page.items, reader), next_id=page.next_id, prev_id=page.prev_id)


class TagView(OpenView):
    """The items with a hashtag, over HTTP."""

    def get(self, request: Request, tag: str) -> HttpResponse:
        """Items with the hashtag, newest first."""
        reader, params = reader_of(request), Params(request)
        asked = wanted(params)
        besides = Besides(*(_tags(params, name) for name in Besides._fields))
        page = timelines.tagged(tag, besides, reader, asked, only_media=params.flag("only_media"))
        return answer(request, statuses(page.items, reader), next_id=page.next_id, prev_id=page.prev_id)


def _tags(params: Params, name: str) -> tuple[str, ...]:
    """The hashtags of a list, each once; a word that is none is in no item, and is passed over."""
    tags = (canonical_tag(word.removeprefix("#")) for word in params.words(name)[:TAGS])
    return tuple(dict.fromkeys(tag for tag in tags if tag))


class KeptView(ClientView):
    """A list of what the caller keeps or likes, over HTTP."""

    kept: Kept

    def get(self, request: Request) -> HttpResponse:
        """The items of the list, the last kept first."""
        reader = caller_of(request)
        page = timelines.kept(reader, self.kept, wanted(Params(request)))
        return answer(request, statuses(page.items, reader), next_id=page.next_id, prev_id=page.prev_id)


class BookmarksView(KeptView):
    """The items that the caller keeps."""

    kept = "bookmark"


class FavouritesView(KeptView):
    """The items that the caller likes."""

    kept = "like"
