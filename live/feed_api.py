import msgspec
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request

from accounts.callers import authenticated_user
from live.feed import live_page
from live.hydrate import SessionBody
from live.walk import LivePage
from storage.paging import as_text
from web.rest import ApiView, FeedResponse, LastIdPagination, Problem, single_parameter

SESSION_ID = OpenApiParameter(
    "session_id", str, description="The walk to go on with, as its first page named it; without it, a new one."
)
SOURCE = OpenApiParameter(
    "X-Feed-Source",
    str,
    OpenApiParameter.HEADER,
    response=[200],
    description="What served the page: lineup, snapshot, inbox, pending, sql.",
)


class LiveFeedPage(msgspec.Struct):
    """A page of a walk. Ask for the next with its `last_id` and `session_id`. `has_more` may be true on a short or
    empty page.
    """

    items: list[SessionBody]
    last_id: str | None
    session_id: str | None
    has_more: bool


class Expired(msgspec.Struct):
    """The walk cannot continue (`code`: `snapshot_expired`). Begin again without last_id and session_id."""

    detail: str
    code: str


def store_after_response(response: HttpResponse, page: LivePage) -> HttpResponse:
    """Write the page's snapshot after the response."""
    response._resource_closers.append(page.store)  # type: ignore[attr-defined]  # called when the server closes it
    return response


class WalkPagination(LastIdPagination):
    size = "page_size"


class LiveFeedView(ApiView):
    scopes = "statuses"
    pages_of = LiveFeedPage
    pagination_class = WalkPagination

    @extend_schema(
        operation_id="read_live_feed",
        parameters=[SESSION_ID, SOURCE],
        responses={
            200: LiveFeedPage,
            404: OpenApiResponse(Problem, "The caller was never given that session_id."),
            410: OpenApiResponse(Expired, "The walk paused for too long, or its snapshot was lost."),
        },
    )
    def get(self, request: Request) -> HttpResponse:
        """Sessions of followed hosts: live (newest start first), upcoming (soonest first), replays (newest end first).
        The first page freezes order and `shown_as`.
        """
        reader = authenticated_user(request)
        session_id, last_id, size = (
            single_parameter(request.GET, "session_id") or None,
            self.bounds["last_id"],
            self.bounds["limit"],
        )
        page = live_page(reader, session_id=session_id, last_id=last_id, page_size=size, now=timezone.now())
        response = FeedResponse(
            LiveFeedPage(page.items, as_text(page.last_id), page.session_id, page.has_more),
            headers={"X-Feed-Source": ",".join(page.sources)},
        )
        return store_after_response(response, page)
