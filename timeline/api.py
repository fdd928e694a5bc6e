import msgspec
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from accounts.callers import authenticated_user
from items.listing import ItemPage
from relations.lists import own_list
from storage.paging import as_text
from timeline import home, lists
from web.rest import MAX_POSITION, ApiView, FeedResponse, position

FEED_SOURCE = OpenApiParameter(
    "X-Feed-Source",
    str,
    OpenApiParameter.HEADER,
    response=[200],
    description="What served the page: inbox, outbox, pending, sql.",
)
SINCE_ID = OpenApiParameter(
    "since_id",
    {"type": "integer", "minimum": 1, "maximum": MAX_POSITION},
    description="Count above this id; without it, all.",
)


class NewCount(msgspec.Struct):
    """The number of new items. `capped`: there may be more than `count`."""

    count: int
    capped: bool


def _answer(page: home.HomePage) -> FeedResponse:
    answer = ItemPage(page.items, as_text(page.last_id), page.has_more)
    return FeedResponse(answer, headers={"X-Feed-Source": ",".join(page.sources)})


class HomeView(ApiView):
    scopes = "statuses"
    pages_of = ItemPage

    @extend_schema(operation_id="read_home", parameters=[FEED_SOURCE])
    def get(self, request: Request) -> HttpResponse:
        """Items of the caller and of followed users, newest first."""
        return _answer(home.home_page(authenticated_user(request), **self.bounds))


class HomeNewView(ApiView):
    """New items at home since an id."""

    scopes = "statuses"

    @extend_schema(operation_id="count_new", parameters=[SINCE_ID], responses={200: NewCount})
    def get(self, request: Request) -> HttpResponse:
        """How many new items the caller's home has, without own reposts."""
        count, capped = home.new_count(authenticated_user(request), since_id=position(request, "since_id") or 0)
        return FeedResponse(NewCount(count, capped))


class ListTimelineView(ApiView):
    """The timeline of one of the caller's lists."""

    scopes = "lists"
    pages_of = ItemPage

    @extend_schema(operation_id="read_list_timeline", parameters=[FEED_SOURCE])
    def get(self, request: Request, list_id: int) -> HttpResponse:
        """Items of the members of a list, newest first."""
        reader = authenticated_user(request)
        listed = own_list(reader, list_id)
        return _answer(lists.list_page(reader, listed.id, **self.bounds))


class ListNewView(ApiView):
    """New items in a list since an id."""

    scopes = "lists"

    @extend_schema(operation_id="count_new_of_list", parameters=[SINCE_ID], responses={200: NewCount})
    def get(self, request: Request, list_id: int) -> HttpResponse:
        """How many new items one of the caller's lists has."""
        reader, since_id = authenticated_user(request), position(request, "since_id") or 0
        count, capped = lists.list_new_count(reader, own_list(reader, list_id).id, since_id=since_id)
        return FeedResponse(NewCount(count, capped))
