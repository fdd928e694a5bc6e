import msgspec
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request

from accounts.callers import authenticated_user
from relations.tags import follow_tag, followed_tags_page, unfollow_tag
from storage.paging import as_text
from web.hashtags import known_tag
from web.rest import ApiView, FeedResponse, Problem
from web.times import Time


class FollowedTagBody(msgspec.Struct):
    """A canonical hashtag, and since when the caller follows it."""

    tag: str
    since: Time


class FollowedTagPage(msgspec.Struct):
    """Followed hashtags. `last_id` is the last follow checked."""

    items: list[FollowedTagBody]
    last_id: str | None
    has_more: bool


class FollowedTagsView(ApiView):
    scopes = "follows"
    pages_of = FollowedTagPage

    @extend_schema(operation_id="list_followed_tags")
    def get(self, request: Request) -> HttpResponse:
        """The caller's hashtags, newest first."""
        user = authenticated_user(request)
        page = followed_tags_page(user, **self.bounds)
        items = [FollowedTagBody(one.name, one.since) for one in page.tags]
        return FeedResponse(FollowedTagPage(items, as_text(page.last_id), page.has_more))


class FollowedTagView(ApiView):
    scopes = "follows"

    @extend_schema(
        operation_id="follow_tag",
        request=None,
        responses={204: None, 409: OpenApiResponse(Problem, "The caller follows as many hashtags as one may.")},
    )
    def put(self, request: Request, tag: str) -> HttpResponse:
        """Follow a hashtag, without #, in any case and width. Home shows public posts with it as "#tag"."""
        follow_tag(user=authenticated_user(request), tag=known_tag(tag))
        return HttpResponse(status=204)

    @extend_schema(operation_id="unfollow_tag", responses={204: None})
    def delete(self, request: Request, tag: str) -> HttpResponse:
        """Stop following a hashtag."""
        unfollow_tag(user=authenticated_user(request), tag=known_tag(tag))
        return HttpResponse(status=204)
