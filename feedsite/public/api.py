import msgspec
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from accounts.callers import authenticated_user, reader_of
from accounts.cards import UserCard
from items.tags.trending import Trend, trends
from relations.suggestions import followed_by, suggestions
from web.rest import ApiView, FeedResponse, PublicApiView

SUGGESTED = 10


class Trends(msgspec.Struct):
    """Popular hashtags, on a single page."""

    items: list[Trend]
    last_id: str | None = None
    has_more: bool = False


class Suggestion(msgspec.Struct):
    """A user to follow. `followed_by`: up to two of the caller's followees who follow them."""

    user: UserCard
    followed_by: list[str]


class Suggestions(msgspec.Struct):
    """People to follow, on a single page."""

    items: list[Suggestion]
    last_id: str | None = None
    has_more: bool = False


class TrendsView(PublicApiView):
    scopes = "statuses"
    pages_of = Trends

    @extend_schema(operation_id="list_trending_tags")
    def get(self, request: Request) -> HttpResponse:
        """Popular hashtags with their uses on the last seven days. There is only one page."""
        found = [] if self.bounds["last_id"] else trends(reader_of(request))
        return FeedResponse(Trends(found[: self.bounds["limit"]]))


class SuggestionsView(ApiView):
    scopes = "accounts"
    pages_of = Suggestions

    @extend_schema(operation_id="list_suggestions")
    def get(self, request: Request) -> HttpResponse:
        """Users whom the caller may follow, and why. There is only one page."""
        user = authenticated_user(request)
        people = [] if self.bounds["last_id"] else suggestions(user, count=SUGGESTED)[: self.bounds["limit"]]
        why = followed_by(user, people)
        found = [Suggestion(UserCard.of(one), why[one.pk].names if one.pk in why else []) for one in people]
        return FeedResponse(Suggestions(found))
