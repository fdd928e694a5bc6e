from collections.abc import Sequence
from functools import wraps

import msgspec
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from rest_framework.request import Request

from accounts.callers import reader_of
from clientapi import html
from clientapi.errors import ClientView, OpenView, caller_of
from clientapi.paging import page_params, paged_answer
from clientapi.params import Params
from clientapi.statuses.presenting import Reader
from relations.tag_api import FollowedTagView
from relations.tags import TAGS, follow_tag, followed_tags_among, followed_tags_page, unfollow_tag
from web.hashtags import known_tag
from web.rest import FeedResponse


class TagEntity(msgspec.Struct):
    """Mastodon's Tag. `history` is filled only for popular hashtags."""

    id: str
    name: str
    url: str
    history: list[dict[str, str]]
    following: bool


def tags_of(tags: Sequence[str], reader: Reader) -> list[TagEntity]:
    """Canonical tags as entities, with whether this reader follows them."""
    followed = followed_tags_among(reader, tags)
    return [TagEntity(tag, tag, html.tag_address(tag), [], tag in followed) for tag in tags]


class TagView(OpenView):
    scopes = "statuses"

    def get(self, request: Request, tag: str) -> HttpResponse:
        """Return the hashtag, and whether the caller follows it."""
        return FeedResponse(tags_of([known_tag(tag.removeprefix("#"))], reader_of(request))[0])


class FollowTagView(ClientView):
    scopes = "follows"

    def post(self, request: Request, tag: str) -> HttpResponse:
        """Follow the hashtag. Repeating changes nothing."""
        user, name = caller_of(request), known_tag(tag.removeprefix("#"))
        follow_tag(user=user, tag=name)
        return FeedResponse(TagEntity(name, name, html.tag_address(name), [], following=True))


_of_apps, _of_the_site = FollowTagView.as_view(), FollowedTagView.as_view()


@wraps(_of_the_site)
def follow(request: HttpRequest, tag: str) -> HttpResponseBase:
    """Follow or unfollow a hashtag. One address of two APIs: apps use POST, the site's own PUT and DELETE."""
    return (_of_apps if request.method == "POST" else _of_the_site)(request, tag=tag)


class UnfollowTagView(ClientView):
    scopes = "follows"

    def post(self, request: Request, tag: str) -> HttpResponse:
        """Unfollow the hashtag. Repeating changes nothing."""
        user, name = caller_of(request), known_tag(tag.removeprefix("#"))
        unfollow_tag(user=user, tag=name)
        return FeedResponse(TagEntity(name, name, html.tag_address(name), [], following=False))


class FollowedTagsView(ClientView):
    """The hashtags that the caller follows."""

    scopes = "follows"

    def get(self, request: Request) -> HttpResponse:
        """List the hashtags. The Link has ids of follows."""
        user, asked = caller_of(request), page_params(Params(request), default=TAGS, most=TAGS)
        page = followed_tags_page(
            user, last_id=asked.max_id, limit=asked.limit, since_id=asked.since_id or 0, min_id=asked.min_id
        )
        newest, oldest = (page.tags[0].id, page.tags[-1].id) if page.tags else (None, None)
        next_id, prev_id = asked.link_ids(newest, oldest, page.last_id, page.has_more)
        entities = [TagEntity(one.name, one.name, html.tag_address(one.name), [], following=True) for one in page.tags]
        return paged_answer(request, entities, next_id=next_id, prev_id=prev_id)
