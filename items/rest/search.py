from collections.abc import Mapping

import msgspec
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from accounts.callers import reader_of
from accounts.cards import UserCard
from items.bodies import ItemBody
from items.listing import ItemPage
from items.search.query import QUERY_LENGTH, parse
from items.search.search import search_items
from items.search.user_search import search_users
from items.tags.tags import tag_page
from web.hashtags import known_tag
from web.rest import FeedResponse, PublicApiView
from web.strict_json import check_text


class SearchPage(msgspec.Struct):
    """A page of search results. Only the first has `users`, at most 20. `last_id` and `has_more` are for `items`."""

    items: list[ItemBody]
    users: list[UserCard]
    last_id: str | None
    has_more: bool


Q = OpenApiParameter(
    "q",
    {"type": "string", "minLength": 1, "maxLength": QUERY_LENGTH},
    required=True,
    description='Words, all of which must be there; "phrases"; -words and -"phrases" to leave out; from:username; '
    "#hashtag. The last may be unfinished.",
)


class SearchView(PublicApiView):
    scopes = "search"
    pages_of = SearchPage
    rates: Mapping[str, str] = {"GET": "search"}

    @extend_schema(operation_id="search", parameters=[Q])
    def get(self, request: Request) -> HttpResponse:
        """Matching items, newest first, and users."""
        reader = reader_of(request)
        query = parse(_search_query(request))
        page = search_items(query, reader, **self.bounds)
        found = search_users(query, reader) if self.bounds["last_id"] is None else []
        users = [UserCard.of(user) for user in found]
        return FeedResponse(SearchPage(page.items, users, page.last_id, page.has_more))


def _search_query(request: Request) -> str:
    values = request.query_params.getlist("q")
    asked = values[0].strip() if len(values) == 1 else ""
    try:
        check_text(asked)
    except ValueError:
        raise serializers.ValidationError({"q": ["It holds what is no text."]}) from None
    if not asked or len(asked) > QUERY_LENGTH:
        raise serializers.ValidationError({"q": [f"Give one, of 1 to {QUERY_LENGTH} characters."]})
    return asked


class TagItemsView(PublicApiView):
    scopes = "statuses"
    pages_of = ItemPage

    @extend_schema(operation_id="list_tag_items")
    def get(self, request: Request, tag: str) -> HttpResponse:
        """The items with a hashtag, newest first. Without #, in any case and width."""
        reader = reader_of(request)
        canonical = known_tag(tag)
        return FeedResponse(tag_page(canonical, reader, **self.bounds))
